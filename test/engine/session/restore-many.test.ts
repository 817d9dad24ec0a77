// Undo of many files: a kill in the middle leaves nothing for good, a change in between takes all back, and it says how far it is.
import { spawn } from 'node:child_process'
import { existsSync, promises as fs, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { History } from '../../../src/engine/history.ts'
import type { Clock } from '../../../src/engine/ports.ts'
import { UndoStack } from '../../../src/engine/undo-stack.ts'
import { skip } from '../../helpers/skip.ts'
import { cleanFolders, clock, folder, never, snapshotsOf } from './help.ts'

const count = 300
const nameOf = (i: number) => `big/${i % 12}/${i}.txt`

describe('undo of many files', function () {
	this.timeout(60_000)
	let root: string
	let store: string
	beforeEach(async () => {
		const base = await folder('garuda-many-')
		root = join(base, 'project')
		store = join(base, 'home', 'x')
		for (let i = 0; i < count; i++) await put(nameOf(i), `old ${i}`)
		await fs.symlink('0.txt', join(root, 'big/0/link'))
	})
	afterEach(cleanFolders)
	const put = async (path: string, text: string) => {
		await fs.mkdir(dirname(join(root, path)), { recursive: true })
		await fs.writeFile(join(root, path), text)
	}
	const all = async () => (await fs.readdir(root, { recursive: true })).sort()
	const left = async () => (await all()).filter((name) => name.endsWith('.garuda-tmp'))
	const records = async () => (await fs.readdir(store)).filter((name) => name.startsWith('restoring.'))
	const texts = () => Promise.all(Array.from({ length: count }, (_, i) => fs.readFile(join(root, nameOf(i)), 'utf8')))
	const old = Array.from({ length: count }, (_, i) => `old ${i}`)
	/** A turn that changes every file, the link, and makes and removes some. */
	const turn = async (snaps = snapshotsOf(root, store)) => {
		const from = (await snaps.take(1, never)).id!
		for (let i = 0; i < count; i++) await put(nameOf(i), `new ${i}`)
		await fs.unlink(join(root, 'big/0/link'))
		await fs.symlink('12.txt', join(root, 'big/0/link'))
		await fs.rm(join(root, 'big/5'), { recursive: true })
		await put('made/a', 'made')
		return { snaps, from, to: (await snaps.take(1, never)).id! }
	}

	it('all come back, in folders that went too, and nothing is left beside them or in the store', async () => {
		const { snaps, from, to } = await turn()
		const before = (await all()).filter((name) => !name.startsWith('made'))
		const seen: number[] = []
		const { restored, conflicts } = await snaps.restore(from, to, {
			progress: (done, total) => seen.push(total === count + 2 ? done : Number.NaN),
		})
		expect([restored.length, conflicts]).to.deep.equal([count + 2, []])
		expect(seen).to.deep.equal(Array.from({ length: count + 2 }, (_, i) => i + 1))
		expect(await texts()).to.deep.equal(old)
		expect(await fs.readlink(join(root, 'big/0/link'))).to.equal('0.txt')
		expect((await all()).filter((name) => !name.startsWith('big/5'))).to.deep.equal(before)
		expect([await left(), await records()]).to.deep.equal([[], []])
	})

	it('killed in the middle, what it was writing is swept by whoever comes next, and undo goes on', async function () {
		if (process.platform !== 'linux') skip(this, 'Linux only')
		const { snaps, from, to } = await turn()
		const source = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
		const script = `
			const { snapshotsOf } = await import(${source('./help.ts')})
			await snapshotsOf(${JSON.stringify(root)}, ${JSON.stringify(store)}).restore(${JSON.stringify(from)}, ${JSON.stringify(to)}, {
				progress: (done) => { if (done > 140) process.kill(process.pid, 'SIGKILL') },
			})`
		const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
			stdio: ['ignore', 'inherit', 'inherit'],
		})
		const signal = await new Promise((done) => child.once('exit', (_, how) => done(how)))
		expect(signal).to.equal('SIGKILL')
		expect(await left()).to.not.deep.equal([])
		expect(await records()).to.have.length(1)
		await snapshotsOf(root, store).tidy()
		expect([await left(), await records()]).to.deep.equal([[], []])
		expect((await snaps.restore(from, to)).conflicts).to.deep.equal([])
		expect(await texts()).to.deep.equal(old)
	})

	it('a file that changes under way, when others wait beside their names, stops it with nothing left beside', async () => {
		const { snaps, from, to } = await turn()
		let mine = ''
		const error = await snaps
			.restore(from, to, {
				progress: (done) => {
					if (done !== 200) return
					// Of those that still wait.
					const waiting = Array.from({ length: count }, (_, i) => nameOf(i)).find(
						(path) => existsSync(join(root, path)) && readFileSync(join(root, path), 'utf8').startsWith('new'),
					)
					mine = waiting!
					writeFileSync(join(root, mine), 'mine')
				},
			})
			.then(
				() => expect.fail('restored over a change'),
				(reason) => reason,
			)
		expect(`${error.message} ${error.hint}`).to.include(mine).and.include('No file was restored')
		expect(await fs.readFile(join(root, mine), 'utf8')).to.equal('mine')
		expect([await left(), await records()]).to.deep.equal([[], []])
		const now = await Promise.all(
			Array.from({ length: count }, (_, i) => fs.readFile(join(root, nameOf(i)), 'utf8').catch(() => 'gone')),
		)
		expect(now.filter((text) => text.startsWith('old'))).to.deep.equal([])
	})

	it('a word for the person after two seconds, and then now and then', async () => {
		let now = 0
		const time: Clock = { ...clock, now: () => now }
		const notes: string[] = []
		const snaps = snapshotsOf(root, store)
		const stack = new UndoStack({
			turns: [],
			undone: [],
			nextTurn: 1,
			history: new History([], 0, async () => {}),
			snapshots: {
				...snaps,
				restore: (from, to, limit) =>
					snaps.restore(from, to, {
						...limit,
						progress: (done, total) => {
							now += 20
							limit!.progress!(done, total)
						},
					}),
			},
			clock: time,
			write: async () => {},
			note: (text) => notes.push(text),
			forget: () => {},
		})
		const number = stack.begin(() => {})
		stack.mark('do it')
		await stack.beforeChange({ tool: 'bash', access: 'run', paths: [], title: '' } as never)
		for (let i = 0; i < count; i++) await put(nameOf(i), `new ${i}`)
		await stack.finish(number, 'done')
		notes.length = 0
		expect((await stack.undo()).done).to.equal(true)
		expect(notes).to.deep.equal(['Putting files back: 100 of 300 so far.'])
		expect((await stack.redo()).done).to.equal(true)
		expect(notes).to.have.length(2)
	})
})
