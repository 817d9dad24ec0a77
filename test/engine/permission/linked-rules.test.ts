// Rules whose path is a link, lies behind one, or is written with more slashes and dots than it needs: they hold for what they mean.
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { createFiles } from '../../../src/engine/files/guard.ts'
import { bash, decider, file, type Lists, type Place, place } from './helpers.ts'

describe('permission: rules and links', () => {
	let at: Place
	before(async () => {
		at = await place()
		for (const dir of [`${at.root}/real`, `${at.home}/data`, `${at.root}/a[b]`]) await mkdir(dir)
		for (const path of ['real/a', 'a[b]/a']) await writeFile(`${at.root}/${path}`, 'x')
		await writeFile(`${at.home}/data/k`, 'x')
		await symlink('real', `${at.root}/link`)
		await symlink('link', `${at.root}/again`)
		await symlink('a[b]', `${at.root}/odd`)
		await symlink('later/x', `${at.root}/dangling`)
		await symlink('loop', `${at.root}/loop`)
		await symlink('data', `${at.home}/there`)
		await symlink(at.home, `${at.dir}/other-home`)
	})
	after(() => at.close())

	const decisions = async (path: string, lists: Lists, where = at) => [
		(await file(where, 'read', path, lists)).decision,
		(await file(where, 'write', path, lists)).decision,
		(await bash(where, `cat ${path}`, lists)).decision,
		(await bash(where, `echo x > ${path}`, lists)).decision,
	]

	it('deny-14 a rule that names a link holds for what lies behind it', async () => {
		for (const [rule, ...paths] of [
			['read(link/**)', 'link/a', 'real/a', 'again/a'],
			['read(./link)', 'link/a', 'real/a', 'real/new'],
			['read(link)', 'link/a', 'real/a'],
			['read(again/a)', 'again/a', 'link/a', 'real/a'],
			['read(link/*)', 'link/a', 'real/a'],
			['read(odd/**)', 'odd/a'],
			['read(~/there)', '~/there/k', '~/data/k'],
			['read(~/there/**)', '~/there/k', '~/data/new'],
			['read(./dangling)', 'later/x'],
		] as [string, ...string[]][])
			for (const path of paths)
				for (const [list, wanted] of [
					['deny', 'deny'],
					['ask', 'ask'],
				] as const)
					expect(await decisions(path, { [list]: [rule] }), `${list} ${rule} ${path}`).to.deep.equal(
						Array(4).fill(wanted),
					)
		expect((await file(at, 'read', 'a[b]/a', { deny: ['read(odd/**)'] })).decision).to.equal('deny')
		expect((await file(at, 'read', 'a[b]/a', { deny: ['read(link/**)'] })).decision).to.equal('allow')
		// A loop leads nowhere; the rule stays as it is written.
		expect((await file(at, 'read', 'real/a', { deny: ['read(./loop/**)'] })).decision).to.equal('allow')
	})

	it('deny-14 ~ in a rule is the home folder also where that is behind a link', async () => {
		const home = `${at.dir}/other-home`
		const linked = { ...at, home, files: await createFiles({ root: at.root, extraDirs: [], home }) }
		for (const path of ['~/data/k', `${at.home}/data/k`])
			expect(await decisions(path, { deny: ['read(~/data/**)'] }, linked), path).to.deep.equal(Array(4).fill('deny'))
	})

	it('an allow rule that names a link allows nothing behind it', async () => {
		const outside = { allow: ['read(~/there/**)'] }
		expect((await file(at, 'read', '~/data/k', outside)).decision).to.equal('ask')
		expect((await file(at, 'read', '~/data/k', { allow: ['read(~/data/**)'] })).decision).to.equal('allow')
	})

	it('a rule is listed once, whatever it leads to', () => {
		const lists = { deny: ['read(link/**)', 'edit(real/**)'], ask: ['read(link)'], outside: ['x'] }
		const all = decider(at, lists).rules()
		expect(all.map(({ text }) => text)).to.deep.equal(['read(link/**)', 'edit(real/**)', 'read(link)', 'x'])
	})

	it('deny-14 slashes and dots too many in a rule take nothing from it', async () => {
		for (const rule of [
			'read(real//a)',
			'read(./real/./a)',
			'read(././real/a)',
			'read(real/.//./a)',
			'read(real//**)',
			'read(real/.)',
			'read(.//real)',
			`read(${at.root}//real/a)`,
			'read(~//proj/real/a)',
		])
			expect(await decisions('real/a', { deny: [rule] }), rule).to.deep.equal(Array(4).fill('deny'))
	})
})
