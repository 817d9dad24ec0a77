// The second places: what is put there, what stays untouched, and how they are read back.
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { auditPlaces, readCheckpoint, readWitness, witnessOf } from '../../../src/engine/audit/witness.ts'
import { decision, one, Place, rewrite, two } from './fixture.ts'

describe('audit: witnesses', () => {
	let at: Place
	beforeEach(async () => {
		at = await Place.make()
	})
	afterEach(() => at.remove())

	const git = (cwd: string, ...args: string[]) =>
		execFileSync('git', args, {
			cwd,
			encoding: 'utf8',
			env: { PATH: process.env.PATH, HOME: at.base, GIT_CONFIG_NOSYSTEM: '1' },
			stdio: ['ignore', 'pipe', 'pipe'],
		}).trim()
	const repository = async (name: string, bare = false) => {
		const path = join(at.base, name)
		git(at.base, 'init', '-q', '-b', 'main', ...(bare ? ['--bare'] : []), path)
		if (bare) return path
		await writeFile(join(path, 'a.txt'), 'a\n')
		git(path, 'add', 'a.txt')
		git(path, '-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-qm', 'start')
		return path
	}

	it('a folder gets a file a session, appended to each turn; what is there stays', async () => {
		const folder = join(at.base, 'w')
		await mkdir(folder)
		await writeFile(join(folder, `${one}.heads.jsonl`), 'was here\n')
		await at.session(one, { witnesses: [{ folder }] })
		await at.session(two, { witnesses: [{ folder }] })
		expect((await readdir(folder)).sort()).to.deep.equal([`${one}.heads.jsonl`, `${two}.heads.jsonl`])
		const text = await readFile(join(folder, `${one}.heads.jsonl`), 'utf8')
		expect(text.split('\n')[0]).to.equal('was here')
		const found = await readWitness({ folder }, at.git)
		expect(found).to.include({ damaged: 1 }).and.not.have.property('failure')
		const lines = await at.parsed(one)
		expect(found.heads.filter((head) => head.session === one).map(({ lines, hash }) => [lines, hash])).to.deep.equal(
			[3, 5, 7, 8].map((n) => [n, lines[n - 1]!.hash]),
		)
		expect((await at.verify({ places: [found] })).ok).to.equal(true)
	})

	it('a turn in which nothing was logged adds no head', async () => {
		const checkpoint = join(at.base, 'heads')
		const log = await at.log(one, { checkpoint })
		await log.append(decision('ls', 'allow'))
		await log.turnEnd()
		await log.turnEnd()
		await log.turnEnd()
		expect((await readCheckpoint(checkpoint)).heads).to.have.length(1)
		await log.close()
	})

	it('a checkpoint may be a file or a folder; the same file serves all sessions', async () => {
		await mkdir(join(at.base, 'c'))
		for (const id of [one, two]) await at.session(id, { checkpoint: join(at.base, 'c') })
		expect(await readdir(join(at.base, 'c'))).to.deep.equal(['garuda-audit-heads.jsonl'])
		const found = await readCheckpoint(join(at.base, 'c'))
		expect(found.heads).to.have.length(8)
		expect((await at.verify({ places: [found] })).ok).to.equal(true)
	})

	it('a folder that is not there is not made (an unmounted disk), nor a link followed: told once, the session goes on', async () => {
		const missing = join(at.base, 'gone')
		const linked = join(at.base, 'linked')
		await mkdir(linked)
		await writeFile(join(at.base, 'mine'), 'mine\n')
		await symlink(join(at.base, 'mine'), join(linked, `${one}.heads.jsonl`))
		await at.session(one, { witnesses: [{ folder: missing }, { folder: linked }] })
		expect(at.reports).to.have.length(2)
		expect(at.reports[0]).to.include(missing)
		expect(await readdir(at.base)).not.to.include('gone')
		expect(await readFile(join(at.base, 'mine'), 'utf8')).to.equal('mine\n')
		expect((await at.verify()).ok).to.equal(true)
	})

	it('a place in the working root is told: the agent can write there', async () => {
		await mkdir(join(at.root, 'w'))
		await symlink(join(at.root, 'w'), join(at.base, 'way-round'))
		await at.session(one, { witnesses: [{ folder: join(at.base, 'way-round') }], checkpoint: join(at.root, 'heads') })
		expect(at.reports.filter((text) => text.includes('proves nothing'))).to.have.length(2)
	})

	for (const bare of [false, true])
		it(`a ${bare ? 'bare ' : ''}repository gets a commit a turn on the ref; branch, index, files and hooks are left alone`, async () => {
			const path = await repository('r', bare)
			const hooks = join(path, ...(bare ? ['hooks'] : ['.git', 'hooks']))
			await mkdir(hooks, { recursive: true })
			for (const hook of ['reference-transaction', 'post-commit', 'pre-commit', 'update', 'post-update']) {
				await writeFile(join(hooks, hook), `#!/bin/sh\ntouch ${join(at.base, 'hook-ran')}\n`)
				await chmod(join(hooks, hook), 0o755)
			}
			if (!bare) await writeFile(join(path, 'b.txt'), 'untracked\n')
			const state = () =>
				bare ? '' : `${git(path, 'status', '--porcelain')}${git(path, 'rev-parse', 'HEAD')}${git(path, 'branch', '-a')}`
			const before = state()
			await rm(join(at.base, 'hook-ran'), { force: true })
			const spec = { git: path }
			await at.session(one, { witnesses: [spec] })
			await at.session(two, { witnesses: [spec] })
			expect(at.reports).to.deep.equal([])
			expect(await readdir(at.base)).not.to.include('hook-ran')
			expect(state()).to.equal(before)
			expect(
				git(path, 'for-each-ref', '--format=%(refname)')
					.split('\n')
					.filter((ref) => !ref.startsWith('refs/heads/')),
			).to.deep.equal(['refs/garuda/witness'])
			expect(git(path, 'rev-list', '--count', 'refs/garuda/witness')).to.equal('8')
			const found = await readWitness(spec, at.git)
			expect(found.heads.map((head) => head.lines)).to.deep.equal([3, 5, 7, 8, 3, 5, 7, 8])
			expect((await at.verify({ places: [found] })).ok).to.equal(true)
			await at.edit(one, (lines) =>
				rewrite(lines, 6, (line) => {
					line.decision = 'deny'
				}),
			)
			await at.fixIndex(one)
			expect((await at.verdict(one)).ok).to.equal(true)
			expect(await at.verdict(one, { places: [found] })).to.include({ ok: false, line: 6, kind: 'rewritten' })
		})

	it('a pushed ref still tells when the local one was moved back', async () => {
		const path = await repository('r')
		const remote = await repository('remote', true)
		const spec = { git: path, ref: 'refs/garuda/me' }
		await at.session(one, { witnesses: [spec] })
		git(path, 'push', '-q', remote, 'refs/garuda/me')
		git(path, 'update-ref', 'refs/garuda/me', 'refs/garuda/me~3')
		await at.edit(one, (lines) => lines.slice(0, 3))
		await at.fixIndex(one)
		expect((await at.verdict(one, { places: [await readWitness(spec, at.git)] })).ok).to.equal(true)
		const far = await readWitness({ ...spec, git: remote }, at.git)
		expect(await at.verdict(one, { places: [far] })).to.include({ ok: false, kind: 'cut', line: 4 })
	})

	it('sessions side by side all land on the ref', async () => {
		const path = await repository('r')
		const ids = [one, two, '01j00000000000cc']
		await Promise.all(ids.map((id) => at.session(id, { witnesses: [{ git: path }] })))
		expect(at.reports).to.deep.equal([])
		expect((await readWitness({ git: path }, at.git)).heads).to.have.length(12)
	})

	it('a folder inside a repository is not taken for one, nor a missing, empty or broken one', async () => {
		const path = await repository('r')
		await mkdir(join(path, 'sub', '.git'), { recursive: true })
		await mkdir(join(path, 'plain'))
		for (const wrong of [join(path, 'sub'), join(path, 'plain'), join(at.base, 'none')]) {
			at.reports.length = 0
			const log = await at.log(one, { witnesses: [{ git: wrong }] })
			await log.append(decision('ls', 'allow'))
			await log.turnEnd()
			await log.turnEnd()
			await log.close()
			expect(at.reports, wrong).to.have.length(1)
			expect((await readWitness({ git: wrong }, at.git)).failure, wrong).to.be.a('string')
		}
		expect(git(path, 'for-each-ref', '--format=%(refname)')).to.equal('refs/heads/main')
	})

	it('a ref that is not there, or commits that are no heads', async () => {
		const path = await repository('r')
		expect((await readWitness({ git: path }, at.git)).failure).to.be.a('string')
		git(path, 'update-ref', 'refs/garuda/witness', 'main')
		expect(await readWitness({ git: path }, at.git)).to.deep.include({ heads: [], damaged: 1 })
		await at.session(one, { witnesses: [{ git: path }] })
		expect(await readWitness({ git: path }, at.git))
			.to.deep.include({ damaged: 1 })
			.and.have.property('heads')
			.with.length(4)
	})

	it('--witness means a repository or a folder; settings name places in the home', async () => {
		const path = await repository('r')
		const bare = await repository('b', true)
		await mkdir(join(at.base, 'w'))
		expect(await witnessOf('r', at.base)).to.deep.equal({ git: path })
		expect(await witnessOf(bare, '/')).to.deep.equal({ git: bare })
		expect(await witnessOf('./w', at.base)).to.deep.equal({ folder: join(at.base, 'w') })
		expect(await witnessOf(`${path}#refs/garuda/me`, '/')).to.deep.equal({ git: path, ref: 'refs/garuda/me' })
		expect(
			auditPlaces(
				{ enabled: true, checkpoint: '~/c', witness: [{ folder: '~/w' }, { git: '/r', ref: 'refs/garuda/x' }] },
				'/home/u',
			),
		).to.deep.equal({
			checkpoint: '/home/u/c',
			witnesses: [{ folder: '/home/u/w' }, { git: '/r', ref: 'refs/garuda/x' }],
		})
	})
})
