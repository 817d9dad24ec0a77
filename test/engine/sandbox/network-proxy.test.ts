// The proxy of commands, by raw bytes: what it lets through, and what it answers to everything else.
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import tls from 'node:tls'
import { expect } from 'chai'
import fc from 'fast-check'
import { clientHelloName } from '../../../src/engine/sandbox/client-hello.ts'
import { type ProxyKit, proxyKit, publicAddress } from './proxy-kit.ts'

/** The first bytes that a TLS client really sends. */
const hello = (servername?: string): Promise<Buffer> =>
	new Promise((resolve) => {
		const wire = new Duplex({
			read() {},
			write(bytes: Buffer, _, done) {
				resolve(bytes)
				done()
			},
		})
		tls.connect({ socket: wire as never, ...(servername && { servername }) }).on('error', () => {})
	})

describe('network proxy', () => {
	let kit: ProxyKit
	afterEach(() => kit.close())
	const refuses = async (authorities: string[], status = 403) => {
		for (const authority of authorities)
			expect(await kit.connect(authority), JSON.stringify(authority)).to.equal(status)
		expect(kit.dialled).to.deep.equal([])
	}

	it('lets a listed name through, at its own address, and carries both ways', async () => {
		kit = await proxyKit()
		expect(await kit.ask('CONNECT ok.example:443 HTTP/1.1\r\n\r\n', 'hello')).to.match(
			/^HTTP\/1\.1 200 [\s\S]*GOT:hello$/,
		)
		// Bytes sent at once with the request belong to the tunnel.
		expect(await kit.ask('CONNECT a.reg.example:80 HTTP/1.0\r\nx: y\r\n\r\nearly')).to.match(
			/^HTTP\/1\.1 200 [\s\S]*GOT:early$/,
		)
		expect(kit.dialled).to.deep.equal([`${publicAddress}:443`, `${publicAddress}:80`])
	})

	it('net-04 CONNECT to an IPv6 or mapped literal is refused', async () => {
		kit = await proxyKit({ hosts: ['ok.example', '::1', '[::1]'] })
		await refuses([
			'[::ffff:169.254.169.254]:80',
			'[::1]:443',
			'::1:443',
			'[2606:4700::1]:443',
			'[fe80::1%25lo]:443',
			'[::]:80',
		])
	})

	it('net-05 CONNECT to a decimal, hex, octal or short address is refused, also when somebody listed it', async () => {
		kit = await proxyKit({ hosts: ['2130706433', '127.1', '127.0.0.1', '0x7f000001', '0177.0.0.1'] })
		await refuses([
			'2130706433:80',
			'0x7f000001:80',
			'0177.0.0.1:80',
			'127.1:80',
			'127.0.0.1:443',
			'169.254.169.254:80',
			'0:80',
		])
	})

	it('net-06 a trailing dot and case get the same verdict', async () => {
		kit = await proxyKit()
		for (const authority of ['OK.Example.:443', 'ok.example.:443', 'OK.EXAMPLE:443'])
			expect(await kit.connect(authority), authority).to.equal(200)
		await kit.close()
		kit = await proxyKit()
		await refuses(['NO.Example.:443', 'no.example.:443', 'ok.example..:443'])
	})

	it('net-07 a suffix without its dot is refused', async () => {
		kit = await proxyKit()
		await refuses([
			'evilreg.example:443',
			'reg.example:443',
			'a.reg.example.evil.test:443',
			'ok.example.evil.test:443',
			'xok.example:443',
		])
		expect(kit.looked, 'a name that is not listed is not even looked up').to.deep.equal([])
	})

	it('net-11 A-labels are compared; bytes above ASCII are refused', async () => {
		kit = await proxyKit({ hosts: ['xn--mnchen-3ya.example', 'ok.example'] })
		expect(await kit.connect('XN--MNCHEN-3YA.example:443')).to.equal(200)
		await kit.close()
		kit = await proxyKit()
		await refuses(['ok\u3002example:443', 'ⓞⓚ.example:443', 'оk.example:443'], 400)
		await refuses(['xn--k-ymb.example:443', 'xn--.example:443'])
	})

	it('net-13 a listed name with one private address is refused whole', async () => {
		kit = await proxyKit({
			addresses: {
				'ok.example': [['169.254.169.254']],
				'a.reg.example': [[publicAddress, '10.0.0.1']],
				'b.reg.example': [['2606:4700::1', '::ffff:127.0.0.1']],
				'c.reg.example': [['127.0.0.1']],
				'd.reg.example': [['fd00::1']],
			},
		})
		await refuses(['ok.example:80', 'a.reg.example:443', 'b.reg.example:443', 'c.reg.example:443', 'd.reg.example:443'])
	})

	it('net-14 one lookup, and the judged address is dialled: a later answer has no effect', async () => {
		kit = await proxyKit({ addresses: { 'ok.example': [[publicAddress], ['127.0.0.1'], ['127.0.0.1']] } })
		expect(await kit.connect('ok.example:443')).to.equal(200)
		expect(kit.looked).to.deep.equal(['ok.example'])
		expect(kit.dialled).to.deep.equal([`${publicAddress}:443`])
		// The next connection judges anew.
		expect(await kit.connect('ok.example:443')).to.equal(403)
		expect(kit.dialled).to.have.length(1)
	})

	it('only ports 443 and 80', async () => {
		kit = await proxyKit()
		await refuses(
			[
				'ok.example:22',
				'ok.example:0',
				'ok.example:65979',
				'ok.example:8080',
				'ok.example',
				'ok.example:',
				'ok.example:44 3',
			].slice(0, 6),
		)
	})

	it('net-16 plain http gets 405 and a word, whatever its Host header says', async () => {
		kit = await proxyKit()
		const client = kit.proxy.begin()
		for (const request of [
			'GET http://ok.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n',
			'POST http://ok.example/ HTTP/1.1\r\nHost: ok.example\r\ncontent-length: 3\r\n\r\nabc',
			'GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n',
			'OPTIONS * HTTP/1.1\r\n\r\n',
		]) {
			const answer = await kit.ask(request)
			expect(answer).to.match(/^HTTP\/1\.1 405 /)
			expect(answer).to.include('plain http does not pass')
		}
		expect(kit.dialled).to.deep.equal([])
		expect(client.refused.join()).to.include('plain http')
	})

	it('the Host header and every other header are without effect; a request that two readers could split is none', async () => {
		kit = await proxyKit()
		const get = (text: string) => kit.ask(text).then((answer) => Number(answer.split(' ')[1]))
		expect(
			await get('CONNECT no.example:443 HTTP/1.1\r\nHost: ok.example:443\r\nx-forwarded-host: ok.example\r\n\r\n'),
		).to.equal(403)
		for (const request of [
			'CONNECT ok.example:443 HTTP/1.1\nHost: x\r\n\r\n',
			'CONNECT ok.example:443 HTTP/1.1\r\nx: a\nGET / HTTP/1.1\r\n\r\n',
			'CONNECT ok.example:443 HTTP/1.1\r\nx: a\rb\r\n\r\n',
			'CONNECT ok.example:443\0 HTTP/1.1\r\n\r\n',
			'CONNECT ok.example:443 HTTP/1.1\r\r\n\r\n',
			'CONNECT ok.example:443 evil.example:443 HTTP/1.1\r\n\r\n',
			'CONNECT ok.example:443 HTTP/2.0\r\n\r\n',
			'CONNECT  ok.example:443 HTTP/1.1\r\n\r\n',
			'connect ok.example:443 HTTP/1.1\r\n\r\n',
			'\x05\x01\x00\r\n\r\n',
			'\r\n\r\n',
		])
			expect(await get(request), JSON.stringify(request)).to.equal(400)
		for (const authority of [
			'ok.example#.evil.test:443',
			'ok.example@evil.test:443',
			'evil.test/ok.example:443',
			'ok.example%00.evil.test:443',
			'http://ok.example:443',
		])
			expect(await get(`CONNECT ${authority} HTTP/1.1\r\n\r\n`), authority).to.equal(403)
		expect(kit.dialled).to.deep.equal([])
	})

	it('net-17 a TLS greeting for another host than the tunnel ends it; the right one and none pass', async () => {
		kit = await proxyKit()
		const client = kit.proxy.begin()
		const through = (bytes: Buffer) => kit.ask('CONNECT ok.example:443 HTTP/1.1\r\n\r\n', bytes)
		expect(await through(await hello('evil.example'))).to.not.include('GOT:')
		expect(client.refused.join()).to.include('evil.example')
		expect(await through(await hello('sub.ok.example'))).to.not.include('GOT:')
		expect(await through(await hello('ok.example'))).to.include('GOT:')
		expect(await through(await hello())).to.include('GOT:')
	})

	it('net-17 the greeting is understood in pieces and in several records; other bytes are not held back', async () => {
		const bytes = await hello('evil.example')
		expect(clientHelloName(bytes)).to.deep.equal({ state: 'found', name: 'evil.example' })
		for (const cut of [0, 1, 4, 5, 6, 60, bytes.length - 1])
			expect(clientHelloName(bytes.subarray(0, cut)).state).to.equal('more')
		const body = bytes.subarray(5)
		const record = (part: Buffer) =>
			Buffer.concat([Buffer.from([0x16, 3, 1, part.length >> 8, part.length & 255]), part])
		expect(
			clientHelloName(
				Buffer.concat([record(body.subarray(0, 3)), record(body.subarray(3, 90)), record(body.subarray(90))]),
			),
		).to.deep.equal({
			state: 'found',
			name: 'evil.example',
		})
		for (const text of [
			'SSH-2.0-x\r\n',
			'GET / HTTP/1.1\r\n',
			'\x16\x02\x00\x00\x01\x01',
			'\x15\x03\x01\x00\x02\x01\x00',
		])
			expect(clientHelloName(Buffer.from(text, 'latin1')).state).to.equal('none')
		fc.assert(
			fc.property(fc.uint8Array({ maxLength: 300 }), (noise) => {
				clientHelloName(Buffer.from(noise))
				const hurt = Buffer.from(bytes)
				for (const [at, value] of noise.entries()) if (at % 7 === 0) hurt[(at * 31) % hurt.length] = value
				clientHelloName(hurt)
			}),
		)
		kit = await proxyKit()
		expect(await kit.ask('CONNECT ok.example:80 HTTP/1.1\r\n\r\n', 'SSH-2.0-x\r\n')).to.include('GOT:SSH-2.0-x')
	})

	it('net-18 whoever relays a request gets the same verdict: it depends on the authority only', async () => {
		kit = await proxyKit()
		const relayed = (authority: string) =>
			`CONNECT ${authority} HTTP/1.1\r\nVia: 1.1 relay\r\nProxy-Authorization: Basic eDp5\r\nForwarded: for=127.0.0.1\r\n\r\n`
		expect(await kit.ask(relayed('no.example:443'))).to.match(/^HTTP\/1\.1 403/)
		expect(await kit.ask(relayed('127.0.0.1:443'))).to.match(/^HTTP\/1\.1 403/)
		// A proxy reached through the proxy is a host like any other.
		expect(await kit.ask(relayed('ok.example:443'), 'CONNECT evil.example:443 HTTP/1.1\r\n\r\n')).to.include(
			'GOT:CONNECT evil',
		)
		expect(kit.looked).to.deep.equal(['ok.example'])
	})

	it('net-27 a header over 8 KB, one that trickles, and too many connections are ended', async () => {
		kit = await proxyKit({ limits: { headerMs: 150, connections: 3 } })
		const long = await kit.ask(`CONNECT ok.example:443 HTTP/1.1\r\nx: ${'a'.repeat(1 << 20)}`)
		expect(long === '' || long.startsWith('HTTP/1.1 431')).to.equal(true)
		expect(await kit.ask(`CONNECT ok.example:443 HTTP/1.1\r\nx: ${'a'.repeat(9_000)}\r\n\r\n`)).to.match(
			/^(?:HTTP\/1\.1 431[\s\S]*)?$/,
		)
		const start = performance.now()
		const slow = connect(kit.port, '127.0.0.1')
		let said = ''
		slow
			.on('error', () => {})
			.on('data', (bytes) => {
				said += bytes
			})
		const drip = setInterval(() => slow.write('C'), 20)
		await new Promise((resolve) => slow.once('end', resolve))
		clearInterval(drip)
		slow.destroy()
		expect(said).to.match(/^HTTP\/1\.1 408/)
		expect(performance.now() - start).to.be.within(100, 2_000)
		const held = Array.from({ length: 3 }, () => connect(kit.port, '127.0.0.1').on('error', () => {}))
		await delay(30)
		expect(await kit.ask('CONNECT ok.example:443 HTTP/1.1\r\n\r\n')).to.match(/^HTTP\/1\.1 503/)
		for (const socket of held) socket.destroy()
		await delay(30)
		expect(await kit.connect('ok.example:443')).to.equal(200)
		expect(kit.dialled).to.have.length(1)
	})

	it('an unlisted host is asked about once while the commands run; the answer ends with the last of them', async () => {
		kit = await proxyKit()
		const asked: string[] = []
		const ask = (allowed: boolean) => async (host: string, port: number) => {
			asked.push(`${host}:${port}`)
			await delay(10)
			return allowed
		}
		const first = kit.proxy.begin(ask(true))
		expect(await Promise.all([kit.connect('new.example:443'), kit.connect('NEW.example.:443')])).to.deep.equal([
			200, 200,
		])
		expect(await kit.connect('new.example:80')).to.equal(200)
		expect(asked).to.deep.equal(['new.example:443', 'new.example:80'])
		const second = kit.proxy.begin()
		first.end()
		expect(await kit.connect('new.example:443'), 'a command still runs').to.equal(200)
		expect(await kit.connect('other.example:443'), 'nobody to ask').to.equal(403)
		second.end()
		const third = kit.proxy.begin(ask(false))
		expect(await kit.connect('new.example:443')).to.equal(403)
		expect(await kit.connect('new.example:443')).to.equal(403)
		expect(asked).to.have.length(3)
		expect(third.refused).to.deep.equal(['new.example:443 (it is not on the list of hosts, and was not allowed)'])
	})

	it('with no command, or one that may not ask, an unlisted host is refused; a question that throws is a no', async () => {
		kit = await proxyKit()
		expect(await kit.connect('new.example:443')).to.equal(403)
		kit.proxy.begin()
		expect(await kit.connect('new.example:443')).to.equal(403)
		kit.proxy.begin(async () => {
			throw new Error('broken')
		})
		expect(await kit.connect('new.example:443')).to.equal(403)
		expect(kit.looked).to.deep.equal([])
	})

	it('what was allowed by an answer still has to have a public address', async () => {
		kit = await proxyKit({ addresses: { 'new.example': [['192.168.1.1']] } })
		const client = kit.proxy.begin(async () => true)
		expect(await kit.connect('new.example:443')).to.equal(403)
		expect(client.refused.join()).to.include('192.168.1.1')
	})

	it('a deny rule beats the list, an ask rule asks although listed', async () => {
		kit = await proxyKit({
			rule: (host) => (host === 'ok.example' ? 'deny' : host === 'a.reg.example' ? 'ask' : undefined),
		})
		const asked: string[] = []
		kit.proxy.begin(async (host) => {
			asked.push(host)
			return true
		})
		expect(await kit.connect('ok.example:443')).to.equal(403)
		expect(await kit.connect('a.reg.example:443')).to.equal(200)
		expect(await kit.connect('b.reg.example:443')).to.equal(200)
		expect(asked).to.deep.equal(['a.reg.example'])
	})

	it('with a password (macOS), a request without it or with another gets 407', async () => {
		kit = await proxyKit({ token: 'right' })
		const with_ = (password: string) =>
			kit.ask(
				`CONNECT ok.example:443 HTTP/1.1\r\nProxy-Authorization: Basic ${Buffer.from(`garuda:${password}`).toString('base64')}\r\n\r\n`,
				'x',
			)
		expect(await with_('wrong')).to.match(/^HTTP\/1\.1 407/)
		expect(await with_('')).to.match(/^HTTP\/1\.1 407/)
		expect(await kit.connect('ok.example:443')).to.equal(407)
		expect(await with_('right')).to.match(/^HTTP\/1\.1 200/)
	})

	it('the last command takes its tunnels with it, and so does the end', async () => {
		kit = await proxyKit()
		const open = async () => {
			const socket = connect(kit.port, '127.0.0.1')
			socket.on('error', () => {})
			socket.write('CONNECT ok.example:443 HTTP/1.1\r\n\r\n')
			await new Promise((resolve) => socket.once('data', resolve))
			return { closed: new Promise((resolve) => socket.once('close', resolve)), socket }
		}
		const [one, two] = [kit.proxy.begin(), kit.proxy.begin()]
		const first = await open()
		one.end()
		one.end()
		await delay(20)
		expect(first.socket.readyState, 'another command still runs').to.equal('open')
		two.end()
		await first.closed
		const second = await open()
		kit.proxy.close()
		await second.closed
	})

	it('a server that does not answer is told as 502, with the name', async () => {
		kit = await proxyKit({ dial: () => connect(1, '127.0.0.1') })
		expect(await kit.ask('CONNECT ok.example:443 HTTP/1.1\r\n\r\n')).to.match(/^HTTP\/1\.1 502[\s\S]*ok\.example/)
	})
})
