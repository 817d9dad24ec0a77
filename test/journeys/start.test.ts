// The first moments: the key's hand-over, odd homes, an unsupported system, what is loaded and left behind.
import { execFileSync } from 'node:child_process'
import {
	chmodSync,
	existsSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import {
	credentials,
	garuda,
	journals,
	lines,
	place,
	repository,
	settings,
	start,
	told,
	until,
} from '../helpers/cli.ts'
import { openaiStream, type SseServer, startSse } from '../helpers/sse-server.ts'
import { removeTemp } from '../helpers/temp.ts'

const script = { steps: [{ text: 'Hello.' }] }
const key = 'sk-handed-over-1234567890'

describe('the key in the environment', function () {
	this.timeout(20_000)
	let server: SseServer | null = null
	afterEach(async () => {
		await server?.close()
		server = null
		removeTemp()
	})

	const environ = (pid: number) => readFileSync(`/proc/${pid}/environ`, 'utf8')

	it('is in no environment block while it works, and still reaches the model server', async () => {
		server = await startSse([
			{ body: [...openaiStream({ text: 'Hi' }).slice(0, 2), { wait: 1500 }, ...openaiStream({ text: 'Hi' }).slice(2)] },
		])
		const at = place()
		const running = start(at, ['-p', 'x', '-m', 'openai/gpt-test'], {
			env: {
				OPENAI_BASE_URL: `${server.url}/v1`,
				OPENAI_API_KEY: key,
				OTHER_AUTH_TOKEN: 'other-token-1234',
				PLAIN: 'kept',
			},
		})
		await until(() => server!.requests.length === 1, running.stderr)
		const block = environ(running.pid)
		expect(block).to.not.include(key).and.not.include('other-token-1234')
		expect(block).to.include('PLAIN=kept').and.to.include('GARUDA_HANDOVER=')
		// The file that carried it is gone.
		const file = /GARUDA_HANDOVER=([^\0]+)/.exec(block)![1]!
		expect(existsSync(file)).to.equal(false)
		expect(server.requests[0]!.headers.authorization).to.equal(`Bearer ${key}`)
		const ran = await running.done
		expect([ran.code, ran.stdout]).to.deep.equal([0, 'Hi\n'])
	})

	it('a command of the agent sees no key, in its environment or that of any process it can look at', async () => {
		const command = `env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; echo end`
		const ran = await garuda(place(), ['-p', 'x', '--output-format', 'stream-json'], {
			script: { steps: [{ calls: [{ name: 'bash', input: { command } }] }, { text: 'ok' }] },
			env: { OPENAI_API_KEY: key, MY_SERVICE_AUTH_TOKEN: 'tok-12345678' },
		})
		expect(ran.stdout).to.include('end').and.not.include(key).and.not.include('tok-12345678')
	})

	it('stdin, exit codes and words come through the hand-over as without it', async () => {
		const at = place()
		const env = { OPENAI_API_KEY: key }
		const steps = [{ expect: 'piped text', text: 'It came.' }]
		const [piped, json, usage, failed, denied] = await Promise.all([
			garuda(at, [], { stdin: 'piped text', script: { steps }, env }),
			garuda(at, ['-p', 'look', '--output-format', 'json'], { stdin: 'piped text', script: { steps }, env }),
			garuda(at, ['-p', 'x', '--nonsense'], { env }),
			garuda(at, ['-p', 'x'], { script: { steps: [{ error: { message: 'no' } }] }, env }),
			garuda(at, ['-p', 'x'], {
				script: { steps: [{ calls: [{ name: 'write_file', input: { path: 'q', content: '' } }] }, { text: 'no' }] },
				env,
			}),
		])
		expect([piped.code, piped.stdout, JSON.parse(json.stdout).result]).to.deep.equal([0, 'It came.\n', 'It came.'])
		expect([usage.code, failed.code, denied.code]).to.deep.equal([2, 1, 3])
		const before = journals(at.root).length
		const running = start(at, ['-p', 'x'], { script: { steps: [{ delayMs: 5000, text: 'late' }] }, env })
		await until(() => environ(running.pid).includes('GARUDA_HANDOVER'), running.stderr)
		// Its turn has begun by then, and somebody listens for the signal.
		await until(() => journals(at.root).length > before, running.stderr)
		running.child.kill('SIGINT')
		expect((await running.done).code).to.equal(130)
	})

	it('a forged GARUDA_HANDOVER is ignored and its file untouched; so is one of another process', async () => {
		const at = place()
		const victim = join(at.home, 'victim')
		writeFileSync(victim, JSON.stringify({ pid: 1, keys: { OPENAI_API_KEY: 'stolen' } }), { mode: 0o600 })
		const shaped = `/dev/shm/garuda-key-${process.getuid!()}-${'0'.repeat(24)}`
		writeFileSync(shaped, JSON.stringify({ pid: 1, keys: { OPENAI_API_KEY: 'stolen' } }), { mode: 0o600 })
		try {
			for (const file of [victim, shaped, '/etc/passwd', join(at.home, 'missing'), '../../etc/passwd', '']) {
				const ran = await garuda(at, ['-p', 'x', '-m', 'openai/gpt-test'], { env: { GARUDA_HANDOVER: file } })
				expect(ran.code, file).to.equal(1)
				expect(ran.stderr, 'no key came of it').to.include('no key for openai')
			}
			expect(readFileSync(victim, 'utf8')).to.include('stolen')
			expect(readFileSync(shaped, 'utf8')).to.include('stolen')
		} finally {
			execFileSync('rm', ['-f', shaped])
		}
	})

	it('Z02 an empty variable is not set: the file counts, and no file is made for it', async () => {
		server = await startSse([{ body: openaiStream({ text: 'Hi' }) }])
		const at = place()
		credentials(at.home, { OPENAI_API_KEY: 'sk-from-file' })
		const ran = await garuda(at, ['-p', 'x', '-m', 'openai/gpt-test'], {
			env: { OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: '' },
		})
		expect(ran.code, ran.stderr).to.equal(0)
		expect(server.requests[0]!.headers.authorization).to.equal('Bearer sk-from-file')
	})

	it('nothing of it is left in the runtime folders', () => {
		const mine = readdirSync('/dev/shm').filter((name) => name.startsWith(`garuda-key-${process.getuid!()}-`))
		for (const name of mine) {
			// Another run of this machine may be between its two halves just now.
			const stat = lstatSync(`/dev/shm/${name}`, { throwIfNoEntry: false })
			if (stat) expect(Date.now() - stat.mtimeMs, name).to.be.below(30_000)
		}
	})
})

describe('the start', function () {
	this.timeout(20_000)
	afterEach(removeTemp)

	it('says the word for native Windows, exit 1, and makes nothing', async () => {
		const at = place()
		const fake = join(at.home, 'windows.mjs')
		writeFileSync(fake, "Object.defineProperty(process, 'platform', { value: 'win32' })\n")
		const ran = await garuda(at, ['-p', 'x'], { node: ['--import', fake], script })
		expect([ran.code, ran.stdout]).to.deep.equal([1, ''])
		expect(ran.stderr).to.include('WSL')
		expect(existsSync(join(at.home, '.garuda'))).to.equal(false)
	})

	it('says the word for an old Node', async () => {
		const at = place()
		const fake = join(at.home, 'old.mjs')
		writeFileSync(
			fake,
			"Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })\n",
		)
		const ran = await garuda(at, ['-p', 'x'], { node: ['--import', fake], script })
		expect(ran.code).to.equal(1)
		expect(ran.stderr).to.include('22.20')
	})

	for (const [what, home, word] of [
		['under /proc', () => '/proc/nowhere', /\/proc\/nowhere/],
		['that is missing', (base: string) => join(base, 'no/such/home'), null],
		['that is empty', () => '', null],
		['that is a file', (base: string) => join(base, 'project/a.txt'), /a\.txt/],
	] as [string, (base: string) => string, RegExp | null][])
		it(`with a home ${what}: --version and --help work, and a task runs or says what is wrong, soon`, async () => {
			const at = place()
			const HOME = home(join(at.home, '..'))
			const [version, help, task] = await Promise.all([
				garuda(at, ['--version'], { env: { HOME } }),
				garuda(at, ['--help'], { env: { HOME } }),
				garuda(at, ['-p', 'x'], { env: { HOME, ...(HOME === '' ? { GARUDA_HOME: join(at.home, 'g') } : {}) }, script }),
			])
			expect([version.code, help.code]).to.deep.equal([0, 0])
			expect(version.stdout).to.match(/^garuda\/\d/)
			if (word) {
				expect(task.code).to.equal(1)
				expect(task.stderr)
					.to.match(word)
					.and.to.not.match(/\n\s+at /)
			} else expect([task.code, task.stdout], task.stderr).to.deep.equal([0, 'Hello.\n'])
		})

	it('Z06 a home that cannot be written, a linked or an open ~/.garuda: refused with the way out, nothing followed', async () => {
		const at = place()
		const other = join(at.home, '..', 'other')
		mkdirSync(other)
		symlinkSync(other, join(at.home, '.garuda'))
		const linked = await garuda(at, ['-p', 'x'], { script })
		expect(linked.code).to.equal(1)
		expect(linked.stderr).to.include('is a link')
		expect(readdirSync(other)).to.deep.equal([])
		const open = place()
		mkdirSync(join(open.home, '.garuda'))
		chmodSync(join(open.home, '.garuda'), 0o777)
		const ran = await garuda(open, ['-p', 'x'], { script })
		expect(ran.code).to.equal(1)
		expect(ran.stderr).to.include('chmod 700')
		expect(readdirSync(join(open.home, '.garuda'))).to.deep.equal([])
	})

	it('a read-only project still gets its answer, with a notice that it is not saved', async () => {
		const at = place()
		// A file in the way works for root too.
		writeFileSync(join(at.root, '.garuda'), 'in the way')
		const ran = await garuda(at, ['-p', 'x'], { script })
		expect(`${ran.stdout}${ran.stderr}`).to.include('.garuda')
		expect(readFileSync(join(at.root, '.garuda'), 'utf8')).to.equal('in the way')
		expect(ran.stderr).to.not.match(/\n\s+at /)
	})

	it('root = home: one settings file, the secrets stay hidden from commands and file tools', async () => {
		const at = place()
		const both = { root: at.home, home: at.home }
		credentials(at.home, { OPENAI_API_KEY: key })
		settings(at.home, { limits: { steps: 5 } })
		const ran = await garuda(both, ['-p', 'x', '--output-format', 'stream-json'], {
			script: {
				steps: [
					{
						calls: [
							{ name: 'read_file', input: { path: '.garuda/credentials' } },
							{ name: 'bash', input: { command: 'cd .garuda && cat cred*; ls -la; echo over' } },
							{ name: 'grep', input: { pattern: 'API_KEY' } },
						],
					},
					{ text: 'ok' },
				],
			},
		})
		expect(ran.stdout).to.not.include(key)
		expect(lines(ran.stdout).at(-1).result).to.equal('ok')
		expect(told(ran.stderr)).to.not.include('project')
	})

	it('the compile cache and all folders of ~/.garuda are private; a linked cache is not used', async () => {
		const at = place()
		await garuda(at, ['-p', 'x'], { script })
		const base = join(at.home, '.garuda')
		expect(lstatSync(base).mode & 0o077).to.equal(0)
		expect(readdirSync(base)).to.include.members(['cache', 'origin'])
		for (const name of readdirSync(base)) expect(lstatSync(join(base, name)).mode & 0o077, name).to.equal(0)
		const other = place()
		const trap = join(other.home, 'trap')
		mkdirSync(trap)
		mkdirSync(join(other.home, '.garuda'), { mode: 0o700 })
		symlinkSync(trap, join(other.home, '.garuda', 'cache'))
		const ran = await garuda(other, ['--version'])
		expect(ran.code).to.equal(0)
		expect(readdirSync(trap)).to.deep.equal([])
	})

	it('--help loads no command room, no model, no schema library', async () => {
		const at = place()
		const loaded = join(at.home, 'loaded')
		await garuda(at, ['--help'], {
			node: ['--import', join(repository, 'test/helpers/loaded.mjs')],
			env: { GARUDA_TEST_LOADED: loaded },
		})
		const text = readFileSync(loaded, 'utf8')
		expect(text)
			.to.include('oclif')
			.and.not.match(/\/engine\/|assemble|anthropic|print-|plain-/)
		expect(text.split('\n').filter((line) => line.startsWith('file:')).length).to.be.below(12)
	})
})
