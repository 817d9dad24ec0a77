// Atomic writes and locks.
import { spawn } from 'node:child_process'
import { promises as fs } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import {
	type Lock,
	lock,
	type Processes,
	procProcesses,
	replaceIn,
	writeAtomic,
} from '../../../src/engine/files/atomic.ts'
import { skip } from '../../helpers/skip.ts'

describe('files/atomic', () => {
	let dir: string
	beforeEach(async () => {
		dir = await fs.mkdtemp(join(tmpdir(), 'garuda-atomic-'))
	})
	afterEach(() => fs.rm(dir, { recursive: true, force: true }))

	it('writes private files, replaces them, and leaves nothing else in the folder', async () => {
		const path = join(dir, 'state.json')
		await writeAtomic(path, '{"a":1}')
		expect((await fs.stat(path)).mode & 0o777).to.equal(0o600)
		await writeAtomic(path, Buffer.from('{"a":2}'), { mode: 0o644 })
		expect([await fs.readFile(path, 'utf8'), (await fs.stat(path)).mode & 0o777]).to.deep.equal(['{"a":2}', 0o644])
		expect(await fs.readdir(dir)).to.deep.equal(['state.json'])
	})

	it('a link in the file’s place is replaced, its target stays', async () => {
		await fs.writeFile(join(dir, 'target'), 'theirs')
		await fs.symlink(join(dir, 'target'), join(dir, 'state'))
		await writeAtomic(join(dir, 'state'), 'mine')
		expect(await fs.readFile(join(dir, 'target'), 'utf8')).to.equal('theirs')
		expect((await fs.lstat(join(dir, 'state'))).isFile()).to.equal(true)
	})

	it('a failure before the rename keeps the old content and cleans up; a fresh file never replaces', async () => {
		await fs.writeFile(join(dir, 'f'), 'old')
		const folder = { at: (name: string) => join(dir, name) }
		const stop = replaceIn(folder, 'f', Buffer.from('new'), {
			before: async () => {
				throw new Error('no')
			},
		})
		expect(await stop.catch((error) => error.message)).to.equal('no')
		expect(await replaceIn(folder, 'f', Buffer.from('new'), { fresh: true }).catch((error) => error.code)).to.equal(
			'EEXIST',
		)
		expect([await fs.readFile(join(dir, 'f'), 'utf8'), await fs.readdir(dir)]).to.deep.equal(['old', ['f']])
	})

	it('a reader never sees a piece of a file', async () => {
		const path = join(dir, 'f')
		await writeAtomic(path, 'a'.repeat(100_000))
		const seen = new Set<string>()
		let done = false
		const reader = (async () => {
			while (!done) {
				const text = await fs.readFile(path, 'utf8')
				seen.add(`${text[0]}${text.length}`)
			}
		})()
		for (let round = 0; round < 30; round++) await writeAtomic(path, (round % 2 ? 'a' : 'b').repeat(100_000))
		done = true
		await reader
		expect([...seen].every((one) => one === 'a100000' || one === 'b100000')).to.equal(true)
	})

	it('a lock is held by one, released by its holder only, and free again', async () => {
		const path = join(dir, 'lock')
		const first = await lock(path, 1)
		expect(first.held).to.equal(true)
		const second = await lock(path, 2)
		expect(second.held).to.equal(false)
		expect((second as { holder: { since: number } }).holder.since).to.equal(1)
		await fs.writeFile(path, JSON.stringify({ pid: 1, start: 'x', host: 'h', token: 'other', since: 3 }))
		await (first as Extract<Lock, { held: true }>).release()
		expect(JSON.parse(await fs.readFile(path, 'utf8')).token).to.equal('other')
		await fs.unlink(path)
		const third = await lock(path, 4)
		await (third as Extract<Lock, { held: true }>).release()
		expect(await fs.readdir(dir)).to.deep.equal([])
	})

	it('a dead holder’s lock is taken over by exactly one of many', async function () {
		if (process.platform !== 'linux') skip(this, 'Linux only')
		const path = join(dir, 'lock')
		const child = spawn('sleep', ['60'])
		const start = (await fs.readFile(`/proc/${child.pid}/stat`, 'latin1')).replace(/^.*\) /s, '').split(' ')[19]!
		await fs.writeFile(path, JSON.stringify({ pid: child.pid, start, host: hostname(), token: 't', since: 0 }))
		expect((await lock(path, 1)).held).to.equal(false)
		child.kill('SIGKILL')
		await new Promise((done) => child.once('exit', done))
		const all = await Promise.all(Array.from({ length: 8 }, (_, index) => lock(path, index)))
		expect(all.filter((one) => one.held)).to.have.length(1)
		expect(await fs.readdir(dir)).to.deep.equal(['lock'])
	})

	it('a later process with the same pid is not the holder; another host’s, or an unclear one, is left alone', async () => {
		const path = join(dir, 'lock')
		const mine = await procProcesses.self()
		await fs.writeFile(path, JSON.stringify({ ...mine, start: '1', host: hostname(), token: 't', since: 0 }))
		expect((await lock(path, 1)).held).to.equal(true)
		await fs.writeFile(path, JSON.stringify({ pid: 999_999_999, start: '1', host: 'elsewhere', token: 't', since: 0 }))
		expect((await lock(path, 1)).held).to.equal(false)
		const unclear: Processes = { self: async () => ({ pid: 5, start: '' }), alive: async () => null }
		await fs.writeFile(path, JSON.stringify({ pid: 999_999_999, start: '', host: hostname(), token: 't', since: 0 }))
		expect((await lock(path, 1, unclear)).held).to.equal(false)
		expect((await lock(path, 1, { ...unclear, alive: async () => false })).held).to.equal(true)
	})

	it('a lock file without a holder (torn, empty, of any bytes) counts as held for a moment only', async () => {
		const path = join(dir, 'lock')
		for (const text of ['{"pid":', '', '\0\0\0', '[]']) {
			await fs.writeFile(path, text)
			expect(await lock(path, 1), text).to.deep.equal({ held: false, holder: null })
			const then = Date.now() / 1000 - 5
			await fs.utimes(path, then, then)
			const taken = await lock(path, 1)
			expect(taken.held, text).to.equal(true)
			await (taken as Extract<Lock, { held: true }>).release()
			expect(await fs.readdir(dir), text).to.deep.equal([])
		}
		// Not to be read, as another user's is: that one may be held, and waits a minute.
		await fs.mkdir(join(dir, 'target'))
		await fs.symlink(join(dir, 'target'), path)
		const age = async (seconds: number) => fs.lutimes(path, Date.now() / 1000 - seconds, Date.now() / 1000 - seconds)
		await age(5)
		expect((await lock(path, 1)).held).to.equal(false)
		await age(90)
		expect((await lock(path, 1)).held).to.equal(true)
	})

	it('a disk that takes nothing leaves no lock, and no guard of a takeover', async () => {
		const module = new URL('../../../src/engine/files/atomic.ts', import.meta.url).href
		const free = join(dir, 'free.lock')
		const torn = join(dir, 'torn.lock')
		await fs.writeFile(torn, '')
		await fs.utimes(torn, 1, 1)
		const code = `const { lock } = await import(${JSON.stringify(module)})
const said = []
for (const path of ${JSON.stringify([free, torn])}) said.push(await lock(path, 1).then(({ held }) => held, (error) => error.code))
console.log(JSON.stringify(said))`
		// No file of this process may get a byte: the same as a full disk, but for the error's name.
		const args = [
			'-c',
			'ulimit -f 0; exec "$@"',
			'sh',
			process.execPath,
			'--import',
			'tsx',
			'--input-type=module',
			'-e',
			code,
		]
		const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] })
		let said = ''
		child.stdout.on('data', (chunk) => {
			said += chunk
		})
		await new Promise((done) => child.once('close', done))
		expect(JSON.parse(said)).to.deep.equal(['EFBIG', 'EFBIG'])
		expect(await fs.readdir(dir)).to.deep.equal(['torn.lock'])
		for (const path of [free, torn]) expect((await lock(path, 1)).held, path).to.equal(true)
	})
})
