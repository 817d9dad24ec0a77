import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { skip } from '../helpers/skip.ts'

const bin = resolve('bin/run.js')
const canRun =
	existsSync('dist/oclif.js') && process.platform === 'linux' && spawnSync('script', ['--version']).status === 0

let folder: string

interface Pty {
	child: ChildProcess
	text(): string
	sees(what: string): Promise<void>
	type(text: string): void
	done: Promise<void>
}

/** A shell on a pseudo terminal that notes the terminal's settings before and after the chat, and the chat's process. */
function pty(): Pty {
	const shell = `stty -g > before; '${process.execPath}' '${bin}' & echo $! > pid; fg >/dev/null 2>&1; echo "code $?"; stty -g > after`
	const child = spawn('script', ['-qec', `bash -mc ${quote(shell)}`, '/dev/null'], {
		cwd: folder,
		env: {
			PATH: process.env.PATH,
			HOME: join(folder, 'home'),
			TERM: 'xterm',
			GARUDA_MODEL_SCRIPT: join(folder, 'script.json'),
		},
		stdio: ['pipe', 'pipe', 'inherit'],
	})
	let text = ''
	child.stdout!.on('data', (chunk: Buffer) => {
		text += chunk.toString('utf8')
	})
	return {
		child,
		text: () => text,
		async sees(what) {
			for (let i = 0; i < 500; i++) {
				if (text.includes(what)) return
				await new Promise((done) => setTimeout(done, 20))
			}
			throw new Error(`never saw ${what} in ${JSON.stringify(text)}`)
		},
		type: (keys) => void child.stdin!.write(keys),
		done: new Promise((done) => child.on('close', () => done())),
	}
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const pidOf = (): number => Number(readFileSync(join(folder, 'pid'), 'utf8'))
const alive = (pid: number): boolean =>
	existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))

describe('the chat on a real terminal', function () {
	this.timeout(30_000)
	before(function () {
		if (!canRun) skip(this, 'no python3')
	})
	beforeEach(() => {
		folder = mkdtempSync(join(tmpdir(), 'garuda-pty-'))
		const steps = [
			{ text: 'the answer', delayMs: 0 },
			{ text: 'late', delayMs: 60_000 },
		]
		writeFileSync(join(folder, 'script.json'), JSON.stringify({ steps }))
		spawnSync('mkdir', [join(folder, 'home')])
	})
	afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

	for (const [name, code, finish] of [
		['/exit', 0, (one: Pty) => one.type('/exit\r')],
		['Ctrl-C twice', 130, (one: Pty) => one.type('\u0003\u0003')],
		['SIGTERM', 143, () => process.kill(pidOf(), 'SIGTERM')],
	] as const)
		it(`T01 after ${name} the terminal's settings and modes are as before`, async () => {
			const one = pty()
			await one.sees('> ')
			one.type('hello\r')
			await one.sees('the answer')
			await new Promise((done) => setTimeout(done, 150))
			finish(one)
			await one.sees(`code ${code}`)
			one.child.stdin!.end()
			await one.done
			expect(readFileSync(join(folder, 'after'), 'utf8')).to.equal(readFileSync(join(folder, 'before'), 'utf8'))
			expect(one.text().lastIndexOf('\u001b[?2004l')).to.be.above(one.text().lastIndexOf('\u001b[?2004h'))
		})

	it('T09 when the terminal is closed in a turn, the process ends and the journal is whole', async () => {
		const one = pty()
		await one.sees('> ')
		one.type('hello\r')
		await one.sees('the answer')
		await new Promise((done) => setTimeout(done, 150))
		one.type('again\r')
		await one.sees('again')
		await new Promise((done) => setTimeout(done, 300))
		const pid = pidOf()
		expect(alive(pid)).to.equal(true)
		one.child.kill('SIGKILL')
		const begin = performance.now()
		for (let i = 0; i < 250 && alive(pid); i++) await new Promise((done) => setTimeout(done, 20))
		expect(alive(pid)).to.equal(false)
		expect(performance.now() - begin).to.be.below(2500)
		const sessions = join(folder, '.garuda', 'sessions')
		const [file] = readdirSync(sessions).filter((name) => name.endsWith('.jsonl'))
		const lines = readFileSync(join(sessions, file!), 'utf8').trimEnd().split('\n')
		for (const line of lines) JSON.parse(line)
		expect(lines.join('\n')).to.include('the answer')
	})
})
