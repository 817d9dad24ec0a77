// What a killed writer left is swept; what anybody else could have written stays.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { promises as fs } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { replaceIn, writerSpace } from '../../../src/engine/files/atomic.ts'
import { createFiles } from '../../../src/engine/files/guard.ts'
import { announce, sweepAnnounced, sweepBeside, sweepFolder } from '../../../src/engine/files/leftovers.ts'
import { skip } from '../../helpers/skip.ts'

describe('files/leftovers', () => {
	let root: string
	const at = (name: string): string => join(root, name)
	const names = async (): Promise<string[]> => (await fs.readdir(root)).sort()
	const hex = (pid: number): string => pid.toString(16).padStart(8, '0')
	/** A pid that nobody has: above the kernel's limit. */
	const nobody = hex(0x7fff_ffff)
	let space: string
	beforeEach(async function () {
		root = await fs.realpath(await fs.mkdtemp(join(tmpdir(), 'garuda-left-')))
		const here = await writerSpace()
		if (here === null) skip(this, 'processes cannot be told apart here')
		space = here!
	})
	afterEach(() => fs.rm(root, { recursive: true, force: true }))
	const old = async (name: string): Promise<void> => {
		const then = Date.now() / 1000 - 120
		await fs.utimes(at(name), then, then)
	}

	it('a writer killed before its rename: the next sweep removes what it left, and the file is the old one', async () => {
		await fs.writeFile(at('code.ts'), 'old')
		const module = new URL('../../../src/engine/files/atomic.ts', import.meta.url).href
		const code = `const { replaceIn } = await import(${JSON.stringify(module)})
await replaceIn({ at: (name) => ${JSON.stringify(root)} + '/' + name }, 'code.ts', Buffer.from('new'), { before: () => { process.kill(process.pid, 'SIGKILL'); return new Promise(() => {}) } })`
		const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
			cwd: fileURLToPath(new URL('../../..', import.meta.url)),
			stdio: 'ignore',
		})
		expect((await once(child, 'close'))[1]).to.equal('SIGKILL')
		const [left] = (await names()).filter((name) => name !== 'code.ts')
		expect(left).to.match(/^\.code\.ts\.[0-9a-f]{24}\.garuda-tmp$/)
		await sweepFolder({ at })
		expect(await names()).to.deep.equal(['code.ts'])
		expect(await fs.readFile(at('code.ts'), 'utf8')).to.equal('old')
	})

	it('keeps what a living writer is writing, here or in another process space, for a minute', async () => {
		const mine = `.a.${space}${hex(process.pid)}00000000.garuda-tmp`
		const elsewhere = `.a.ffffffff${nobody}00000000.garuda-tmp`
		await fs.writeFile(at(mine), 'half')
		await fs.writeFile(at(elsewhere), 'half')
		await sweepFolder({ at })
		expect(await names()).to.deep.equal([mine, elsewhere].sort())
		await old(mine)
		await old(elsewhere)
		await sweepFolder({ at })
		expect(await names()).to.deep.equal([])
		let seen: string[] = []
		await replaceIn({ at }, 'b', Buffer.from('b'), {
			before: async () => {
				await sweepFolder({ at })
				seen = await names()
			},
		})
		expect(seen).to.have.length(1)
		expect(await names()).to.deep.equal(['b'])
	})

	it('removes nothing but files and links of this user under the exact names, and never what a link leads to', async () => {
		const dead = `${space}${nobody}00000000.garuda-tmp`
		const kept = [`a.${dead}`, `.a.${dead}.ts`, `.a.x${dead}`, '.a.0123456789ab.garuda-tmp', `.a.${dead.toUpperCase()}`]
		for (const name of kept) {
			await fs.writeFile(at(name), 'theirs')
			await old(name)
		}
		await fs.writeFile(at('target'), 'theirs')
		await fs.mkdir(at(`.folder.${dead}`))
		const before = await names()
		await fs.writeFile(at(`.a.${dead}`), 'left')
		await fs.writeFile(at(`.two\nlines.${dead}`), 'left')
		await fs.symlink(at('target'), at(`.link.${dead}`))
		await sweepFolder({ at })
		expect(await names()).to.deep.equal(before)
	})

	it('leaves files of another user alone', async function () {
		if (process.getuid?.() !== 0) skip(this, 'only root can do this')
		const name = `.a.${space}${nobody}00000000.garuda-tmp`
		await fs.writeFile(at(name), 'theirs')
		await fs.chown(at(name), 12_345, 12_345)
		await old(name)
		await sweepFolder({ at })
		expect(await names()).to.deep.equal([name])
	})

	it('a write sweeps its folder once; a resume the folders of the paths, inside the roots and never through a link', async () => {
		const outside = await fs.realpath(await fs.mkdtemp(join(tmpdir(), 'garuda-left-')))
		try {
			const dead = `.a.${space}${nobody}00000000.garuda-tmp`
			const files = await createFiles({ root, home: root })
			await fs.mkdir(at('src'))
			await fs.mkdir(at('.git'))
			await fs.symlink(outside, at('out'))
			const everywhere = [at(dead), at(`src/${dead}`), at(`.git/${dead}`), join(outside, dead)]
			for (const file of everywhere) await fs.writeFile(file, 'left')
			const there = async () =>
				(await Promise.all(everywhere.map((file) => fs.stat(file).catch(() => null)))).map(Boolean)
			await sweepBeside(files, ['src/new.ts', 'out/x', '../x', `${outside}/x`, '.git/config', '', 'a\0b'])
			expect(await there()).to.deep.equal([true, false, true, true])
			await files.write(at('made'), Buffer.from('x'), null)
			expect(await there()).to.deep.equal([false, false, true, true])
		} finally {
			await fs.rm(outside, { recursive: true, force: true })
		}
	})

	it('what a killed process announced is swept once: inside the root only, and not of a living one', async () => {
		const outside = await fs.realpath(await fs.mkdtemp(join(tmpdir(), 'garuda-left-')))
		try {
			const store = at('store')
			const dead = `.a.${space}${nobody}00000000.garuda-tmp`
			for (const name of ['store', 'src', '.git', '.git/x']) await fs.mkdir(at(name))
			await fs.symlink(outside, at('out'))
			const everywhere = [at(dead), at(`src/${dead}`), at(`.git/x/${dead}`), at(`.git/${dead}`), join(outside, dead)]
			const there = async () =>
				(await Promise.all(everywhere.map((file) => fs.stat(file).catch(() => null)))).map(Boolean)
			const record = async (mark: string, text?: string) => {
				for (const file of everywhere) await fs.writeFile(file, 'left')
				const folders = [root, at('src'), at('none'), at('.git/x'), at('.git'), at('out'), outside, `${root}/../x`, 7]
				await fs.writeFile(join(store, `restoring.${mark}`), text ?? JSON.stringify(folders))
			}
			const kept = () => fs.readdir(store)
			await record(`${space}${nobody}00000000`)
			await sweepAnnounced(store, root)
			expect([await there(), await kept()]).to.deep.equal([[false, false, true, true, true], []])
			// A living one is at it; one that cannot be looked at has a minute.
			for (const mark of [`${space}${hex(process.pid)}00000000`, `ffffffff${nobody}00000000`]) {
				await record(mark)
				await sweepAnnounced(store, root)
				expect([await there(), await kept()]).to.deep.equal([[true, true, true, true, true], [`restoring.${mark}`]])
				await old(join('store', `restoring.${mark}`))
				await sweepAnnounced(store, root)
				expect((await kept()).length, mark).to.equal(mark.startsWith('ffffffff') ? 0 : 1)
				await fs.rm(join(store, `restoring.${mark}`), { force: true })
			}
			for (const text of ['{"a"', '{}', '']) {
				await record(`${space}${nobody}00000000`, text)
				await sweepAnnounced(store, root)
				expect([await there(), await kept()], text).to.deep.equal([[true, true, true, true, true], []])
			}
			await sweepAnnounced(at('no-store'), root)
			const over = await announce(store, [at('src')])
			expect(await kept()).to.have.length(1)
			await over()
			expect(await kept()).to.deep.equal([])
		} finally {
			await fs.rm(outside, { recursive: true, force: true })
		}
	})
})
