// The doctor: what is right passes, each thing that is broken fails by its name, and nothing private is in the report.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { UserError } from '../../../src/engine/errors.ts'
import { createExecutor, type SandboxOptions } from '../../../src/engine/sandbox/index.ts'
import { checkClock, checkNode, checkTerminal, checkWsl } from '../../../src/engine/setup/check-machine.ts'
import { checkWalls } from '../../../src/engine/setup/check-walls.ts'
import { type DoctorPlace, doctor, reportText } from '../../../src/engine/setup/doctor.ts'
import { shareable, warn } from '../../../src/engine/setup/report.ts'
import { skip } from '../../helpers/skip.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'
import { clock, freePort, goodKey, json, provider, type Scene, scene } from './fixture.ts'

const canSandbox =
	process.platform === 'linux' && spawnSync('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true']).status === 0
const scenes: Scene[] = []

/** No sandbox is tried here: what it says is tested by itself. */
const noSandbox: DoctorPlace['make'] = async () => {
	throw new UserError(
		'Commands cannot run in a sandbox: AppArmor does not let bubblewrap make user namespaces (x).',
		'Ubuntu 24.04 and newer: sudo apt install apparmor-profiles',
	)
}

async function place(
	o: { steps?: Parameters<typeof scene>[0]; env?: Record<string, string>; files?: Record<string, string> } = {},
): Promise<DoctorPlace & { garuda: string; scene: Scene }> {
	const at = await scene(o.steps ?? provider(), o.env)
	scenes.push(at)
	mkdirSync(at.garuda, { mode: 0o700 })
	for (const [name, text] of Object.entries(o.files ?? {})) writeFileSync(join(at.garuda, name), text, { mode: 0o600 })
	return {
		...at.place,
		env: { PATH: process.env.PATH, LANG: 'C.UTF-8', TERM: 'xterm', ...at.place.env },
		clock: { now: () => Date.now(), sleep: clock.sleep },
		cwd: at.home,
		tmpdir: tempDir(),
		nodeVersion: 'v24.21.0',
		terminal: { stdin: true, stdout: true, columns: 100 },
		launcher: { command: 'garuda', args: ['acp'] },
		make: noSandbox,
		garuda: at.garuda,
		scene: at,
	}
}
const good = { 'models.json': '{"default": "openai/big-1"}', credentials: JSON.stringify({ OPENAI_API_KEY: goodKey }) }
const statuses = async (at: DoctorPlace) => {
	const report = await doctor(at)
	expect(JSON.stringify(report)).to.not.include(goodKey)
	return { report, of: (id: string) => report.lines.find((one) => one.id === id), text: reportText(report) }
}

describe('setup: the doctor', () => {
	afterEach(async () => {
		for (const one of scenes.splice(0)) await one.close()
		removeTemp()
	})

	it('a good place passes, with one request to the provider', async () => {
		const at = await place({ files: good })
		const { of, report } = await statuses(at)
		for (const id of [
			'node',
			'files.folder',
			'files.credentials',
			'files.models',
			'files.settings',
			'files.policy',
			'files.modes',
			'model',
			'clock',
			'terminal',
		])
			expect(of(id)?.status, `${id}: ${of(id)?.detail}`).to.equal('pass')
		expect(of('model')!.detail).to.include('openai/big-1').and.include('takes the key')
		expect(at.scene.server.requests).to.have.length(1)
		expect(report.lines.every((one) => /^[a-z.]+$/.test(one.id))).to.equal(true)
	})

	it('nothing set up: the model fails with what to run, nothing is asked of any server', async () => {
		const at = await place()
		const { of, report, text } = await statuses(at)
		expect(of('model')).to.include({ status: 'fail', fix: 'Run "garuda setup".' })
		expect(report.ok).to.equal(false)
		expect(text)
			.to.match(/^FAIL {2}model .*No model is chosen/m)
			.and.match(/→ Run "garuda setup"/)
		expect(at.scene.server.connections()).to.equal(0)
	})

	it("only a key of Anthropic's: the model that the chat takes then is checked", async () => {
		const at = await place({ steps: provider(['claude-sonnet-5-5']), env: { ANTHROPIC_API_KEY: goodKey } })
		expect((await statuses(at)).of('model')).to.include({ status: 'pass' })
	})

	const models: [string, Parameters<typeof place>[0], string, RegExp][] = [
		[
			'a wrong key',
			{ files: { ...good, credentials: '{"OPENAI_API_KEY": "sk-wrong-0123456789"}' } },
			'fail',
			/did not accept the key/,
		],
		['no key', { files: { 'models.json': good['models.json'] } }, 'fail', /no key for openai/],
		[
			'a key that cannot be one',
			{ files: { ...good, credentials: '{"OPENAI_API_KEY": "sk a"}' } },
			'fail',
			/white space/,
		],
		[
			'a model that is not listed',
			{ files: { ...good, 'models.json': '{"default": "openai/gone"}' } },
			'warn',
			/does not list gone/,
		],
		[
			'no credit',
			{ steps: [json({ error: { message: 'Insufficient Balance' } }, 402)], files: good },
			'fail',
			/no credit/,
		],
		[
			'a redirect',
			{ steps: [{ status: 302, headers: { location: 'http://127.0.0.1:9/' } }], files: good },
			'fail',
			/redirect/,
		],
		[
			'a model the team policy forbids',
			{ files: { ...good, 'policy.json': '{"models": ["anthropic/*"]}' } },
			'fail',
			/does not allow/,
		],
	]
	for (const [name, how, status, words] of models)
		it(`the model: ${name}`, async () => {
			const line = (await statuses(await place(how))).of('model')!
			expect(line.status).to.equal(status)
			expect(line.detail).to.match(words)
		})

	it('the model: a server that is not running', async () => {
		const at = await place({ files: good })
		const line = (
			await statuses({ ...at, env: { ...at.env, OPENAI_BASE_URL: `http://127.0.0.1:${await freePort()}` } })
		).of('model')!
		expect([line.status, /Nothing answers/.test(line.detail)]).to.deep.equal(['fail', true])
	})

	it("files: open credentials, a link, a broken file, others' write rights; each fails by its name", async () => {
		const open = await place({ files: good })
		chmodSync(join(open.garuda, 'credentials'), 0o644)
		expect((await statuses(open)).of('files.credentials')).to.include({ status: 'fail' })
		const linked = await place({ files: { real: '{}' } })
		symlinkSync(join(linked.garuda, 'real'), join(linked.garuda, 'credentials'))
		expect((await statuses(linked)).of('files.credentials')!.detail).to.include('is a link')
		const broken = await place({ files: { 'settings.json': '{"a": }', 'models.json': '{,}' } })
		const found = await statuses(broken)
		expect(found.of('files.settings')!.detail).to.match(/~\/\.garuda\/settings\.json:1:7/)
		expect(found.of('files.models')!.detail).to.match(/models\.json:1:2/)
		expect(found.of('model')!.status).to.equal('skip')
		const writable = await place({ files: { 'trust.json': '{}' } })
		chmodSync(join(writable.garuda, 'trust.json'), 0o666)
		expect((await statuses(writable)).of('files.modes'))
			.to.include({ status: 'fail' })
			.and.property('detail')
			.include('trust.json (0666)')
		const seen = await place()
		chmodSync(seen.garuda, 0o755)
		expect((await statuses(seen)).of('files.folder')).to.include({ status: 'warn' })
	})

	it('a broken team policy stops the report there, as it stops a session', async () => {
		const { of, report } = await statuses(await place({ files: { ...good, 'policy.json': '{broken' } }))
		expect(of('files')).to.include({ status: 'fail' })
		expect(report.ok).to.equal(false)
	})

	it('no sandbox: the cause and the cure, and no wall passes', async () => {
		const { of } = await statuses(await place({ files: good }))
		expect(of('sandbox')).to.include({ status: 'fail' })
		expect(of('sandbox')!.detail).to.include('AppArmor')
		expect(of('sandbox')!.fix).to.include('apparmor-profiles')
		for (const wall of ['write', 'secrets', 'network', 'processes', 'keys'])
			expect(of(`sandbox.${wall}`)!.status).to.equal('skip')
	})

	it('a sandbox that the settings switch off is a warning, and is not called a pass', async () => {
		const { of } = await statuses(await place({ files: { ...good, 'settings.json': '{"executor": "host"}' } }))
		expect([of('sandbox')!.status, of('sandbox.write')!.status]).to.deep.equal(['warn', 'skip'])
	})

	it('the proxy and the certificates that the variables name', async () => {
		const ca = await place({
			files: good,
			env: {
				NODE_EXTRA_CA_CERTS: '/no/such.pem',
				HTTPS_PROXY: 'http://me:secret-pass@proxy.example:3128',
				NO_PROXY: '127.0.0.1',
			},
		})
		const { of, text } = await statuses(ca)
		expect(of('network.certificates')).to.include({ status: 'fail' })
		expect(of('network.proxy')!.detail).to.equal('requests go through http://proxy.example:3128')
		expect(text).to.not.include('secret-pass')
		const odd = await place({ files: good, env: { HTTPS_PROXY: 'socks5://x:1' } })
		expect((await statuses(odd)).of('network.proxy')).to.include({ status: 'fail' })
	})

	it("an editor's entry that starts nothing is a warning", async () => {
		const at = await place({ files: good })
		mkdirSync(join(at.home, '.jetbrains'))
		writeFileSync(
			join(at.home, '.jetbrains', 'acp.json'),
			'{"agent_servers": {"Garuda": {"command": "/no/such/garuda"}}}',
		)
		expect((await statuses(at)).of('editor.jetbrains')).to.include({ status: 'warn' })
		writeFileSync(join(at.home, '.jetbrains', 'acp.json'), '{"agent_servers": {"Garuda": {"command": "/bin/sh"}}}')
		expect((await statuses(at)).of('editor.jetbrains')).to.include({ status: 'pass' })
	})

	it('Node, WSL, clock and terminal: good, odd and bad', async () => {
		const status = (lines: { status: string }[]) => lines.map((one) => one.status)
		expect(
			['v24.0.0', 'v22.20.0', 'v22.19.9', 'v20.20.2'].map((one) => status(checkNode(one, 'linux'))[0]),
		).to.deep.equal(['pass', 'pass', 'fail', 'fail'])
		expect(status(checkNode('v24.0.0', 'win32'))).to.deep.equal(['pass', 'fail'])
		const wsl = (text: string) => checkWsl(async () => text)
		expect(status(await wsl('Linux version 4.4.0-19041-Microsoft (x)'))).to.deep.equal(['fail'])
		expect(status(await wsl('Linux version 5.15.0-microsoft-standard-WSL2'))).to.deep.equal(['pass'])
		expect(status(await wsl('Linux version 6.1.0'))).to.deep.equal([])
		const now = Date.UTC(2026, 10, 30)
		const at = (seconds: number) => checkClock(now, new Date(now + seconds * 1000).toUTCString()).status
		expect([
			at(0),
			at(-60),
			at(301),
			at(-90_000),
			checkClock(now, null).status,
			checkClock(0, null).status,
		]).to.deep.equal(['pass', 'pass', 'warn', 'fail', 'skip', 'fail'])
		const tty = { stdin: true, stdout: true, columns: 100 }
		const term = (env: Record<string, string>, columns = 100) => checkTerminal({ ...tty, columns }, env).status
		expect([
			term({ TERM: 'xterm', LANG: 'en_US.UTF-8' }),
			term({ TERM: 'dumb', LANG: 'C.UTF-8' }),
			term({ TERM: 'xterm', LANG: 'C' }),
			term({ TERM: 'xterm', LANG: 'C.utf8' }, 40),
		]).to.deep.equal(['pass', 'warn', 'warn', 'warn'])
	})

	it('a report may be shared: no key, no login of an address, no home, no user name', () => {
		const { lines } = shareable(
			[
				warn(
					'x',
					`key ${goodKey} at https://me:pw@host/ in /home/alice/.garuda and /mnt/alice/x of /home/alice`,
					'rm /home/alice/y',
				),
			],
			{ home: '/home/alice', secrets: [goodKey] },
		)
		expect(lines[0]).to.deep.include({
			detail: 'key [key] at https://[login]@host/ in ~/.garuda and /mnt/[user]/x of ~',
			fix: 'rm ~/y',
		})
	})

	describe('the walls, tried for real', function () {
		this.timeout(30_000)
		before(function () {
			if (!canSandbox) skip(this, 'no sandbox')
		})
		const options = () => {
			const home = join(tempDir(), 'home')
			for (const dir of ['.garuda', '.ssh', '.aws']) mkdirSync(join(home, dir), { recursive: true, mode: 0o700 })
			writeFileSync(join(home, '.ssh', 'id'), 'secret')
			writeFileSync(join(home, '.netrc'), 'secret')
			const system = tempDir()
			return {
				home,
				garudaHome: join(home, '.garuda'),
				env: { PATH: process.env.PATH, HOME: home },
				platform: process.platform,
				tmpdir: tmpdir(),
				systemFolders: [system],
				settings: {
					executor: 'auto' as const,
					profile: 'standard' as const,
					writePaths: [],
					envAllow: [],
					denyRead: [],
				},
				system,
			}
		}
		const of = (lines: { id: string; status: string; detail: string }[]) =>
			Object.fromEntries(lines.map((one) => [one.id, one.status]))

		it('the sandbox holds on every wall, and nothing is left behind', async () => {
			const o = options()
			const lines = await checkWalls(o)
			const { sandbox, ...walls } = of(lines)
			expect(walls, JSON.stringify(lines, null, 1)).to.deep.equal({
				'sandbox.write': 'pass',
				'sandbox.secrets': 'pass',
				'sandbox.network': 'pass',
				'sandbox.processes': 'pass',
				'sandbox.keys': 'pass',
			})
			expect(['pass', 'warn']).to.include(sandbox)
			expect([readdirSync(o.garudaHome), readdirSync(o.system), readdirSync(o.home).sort()]).to.deep.equal([
				[],
				[],
				['.aws', '.garuda', '.netrc', '.ssh'],
			])
			expect(readdirSync(tmpdir()).filter((name) => name.startsWith('garuda-check-'))).to.deep.equal([])
		})

		it('without a sandbox behind it every wall fails: none of the trials is blind', async () => {
			const o = options()
			const lines = await checkWalls({
				...o,
				make: async (given: SandboxOptions) =>
					createExecutor({ ...given, executor: 'host', envAllow: ['GARUDA_CHECK_API_KEY'] }),
			})
			const { sandbox: _, ...walls } = of(lines)
			expect(walls, JSON.stringify(lines, null, 1)).to.deep.equal({
				'sandbox.write': 'fail',
				'sandbox.secrets': 'fail',
				'sandbox.network': 'fail',
				'sandbox.processes': 'fail',
				'sandbox.keys': 'fail',
			})
			expect([readdirSync(o.garudaHome), readdirSync(o.system), readdirSync(o.home).sort()]).to.deep.equal([
				[],
				[],
				['.aws', '.garuda', '.netrc', '.ssh'],
			])
		})

		it('a GARUDA_HOME that commands can read is found', async function () {
			const o = options()
			// Below /tmp it is hidden in any case: commands have a /tmp of their own.
			const outside = join('/var/lib', `garuda-test-${process.pid}`)
			try {
				mkdirSync(outside, { mode: 0o700 })
			} catch {
				skip(this, 'this user makes no folder there')
			}
			try {
				const lines = await checkWalls({ ...o, garudaHome: outside })
				expect(of(lines)['sandbox.secrets']).to.equal('fail')
				expect(lines.find((one) => one.id === 'sandbox.secrets')!.fix).to.include('GARUDA_HOME')
				const hidden = await checkWalls({
					...o,
					garudaHome: outside,
					settings: { ...o.settings, denyRead: [outside] } as never,
				})
				expect(of(hidden)['sandbox.secrets']).to.equal('pass')
			} finally {
				;(await import('node:fs')).rmSync(outside, { recursive: true })
				expect(existsSync(outside)).to.equal(false)
			}
		})
	})
})
