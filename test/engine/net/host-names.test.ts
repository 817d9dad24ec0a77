// Which text is a host name, and which names a list means.

import { isIP } from 'node:net'
import { expect } from 'chai'
import fc from 'fast-check'
import { canonicalHost, expandHosts, networkNote, onList, presetNames } from '../../../src/engine/net/host-names.ts'

const list = (...entries: string[]): string[] => {
	const hosts = expandHosts(entries)
	if ('error' in hosts) throw new Error(hosts.error)
	return hosts
}
const covers = (entry: string, host: string) => onList(list(entry), canonicalHost(host) ?? 'none')

describe('host names', () => {
	it('net-05 addresses in any spelling are no names', () => {
		for (const text of [
			...[
				'2130706433',
				'0x7f000001',
				'0177.0.0.1',
				'127.1',
				'127.0.0.1',
				'127.0.0.1.',
				'0x7f.1',
				'1.2.3.4',
				'017700000001',
			],
			...['a.0x7f', 'a.1', 'evil.example.127', '１２７.0.0.1', '①.②.③.④', '127。0。0。1'],
		])
			expect(canonicalHost(text), text).to.equal(null)
	})

	it('net-04 IPv6 and mapped literals are no names, with or without brackets and zone', () => {
		for (const text of [
			'[::1]',
			'::1',
			'[::ffff:169.254.169.254]',
			'::ffff:a9fe:a9fe',
			'fe80::1%eth0',
			'[2606:4700::1111]',
			'::',
		])
			expect(canonicalHost(text), text).to.equal(null)
	})

	it('net-06 one trailing dot and upper case change nothing; two dots are none', () => {
		for (const text of ['ok.example', 'OK.Example', 'ok.example.', 'OK.EXAMPLE.'])
			expect(covers('ok.example', text), text).to.equal(true)
		for (const text of ['ok.example..', '.ok.example', 'ok..example', '.', ''])
			expect(canonicalHost(text), text).to.equal(null)
	})

	it('net-07 a suffix matches at a dot only, and not itself', () => {
		for (const host of ['a.reg.example', 'a.b.reg.example', 'A.REG.example.'])
			expect(covers('*.reg.example', host), host).to.equal(true)
		for (const host of [
			'evilreg.example',
			'reg.example',
			'reg.example.evil.test',
			'xreg.example',
			'a.reg.example.test',
		])
			expect(covers('*.reg.example', host), host).to.equal(false)
		expect(covers('reg.example', 'a.reg.example')).to.equal(false)
	})

	it('net-11 names are compared as A-labels: a look-alike is another name, an odd spelling the same', () => {
		expect(covers('münchen.example', 'xn--mnchen-3ya.example')).to.equal(true)
		expect(covers('xn--mnchen-3ya.example', 'MÜNCHEN.example')).to.equal(true)
		// Cyrillic о and а in ok.example and apple.example
		expect(covers('ok.example', '\u043ek.example')).to.equal(false)
		expect(covers('apple.example', '\u0430pple.example')).to.equal(false)
		expect(canonicalHost('ⓞⓚ.example')).to.equal('ok.example')
	})

	it('characters that end a name for some reader make it none', () => {
		for (const text of [
			...[
				'ok.example\0.evil.test',
				'evil.test\0ok.example',
				'ok.example\n',
				'ok.example ',
				' ok.example',
				'a\tb.example',
			],
			...[
				'ok.example#.evil.test',
				'ok.example@evil.test',
				'evil.test%00.ok.example',
				'ok.example/evil.test',
				'ok.example\\evil.test',
			],
			...[
				'ok.example:443',
				'ok.example?x',
				'[ok.example]',
				'ok.example;x',
				'a*.example',
				'-a.example',
				'a-.example',
				'localhost',
				'com',
			],
			`${'a'.repeat(64)}.example`,
			`${'a.'.repeat(130)}example`,
			// Short as it is written, too long as it is sent.
			`${`${'ü'.repeat(30)}.`.repeat(8)}de`,
		])
			expect(canonicalHost(text), JSON.stringify(text)).to.equal(null)
	})

	it('what it returns is stable, no address, and made of plain labels (any text)', () => {
		const text = fc.oneof(
			fc.string({ unit: 'grapheme', maxLength: 40 }),
			fc.domain(),
			fc.stringMatching(/^[0-9a-fx.:%[\]]{1,30}$/),
			fc
				.tuple(fc.domain(), fc.constantFrom('.', '..', '\0', '@a.b', '#', '/', '%2e', '\u3002a'))
				.map((parts) => parts.join('')),
		)
		fc.assert(
			fc.property(text, (one) => {
				const name = canonicalHost(one)
				if (name === null) return
				expect(canonicalHost(name)).to.equal(name)
				expect(isIP(name)).to.equal(0)
				expect(name).to.match(/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/)
				// What a URL makes of it is the same host: nobody reads another name out of it.
				expect(new URL(`https://${name}/`).hostname).to.equal(name)
			}),
			{ numRuns: 2000 },
		)
	})
})

describe('host lists', () => {
	it('config-24 an empty list is no host, never all', () => {
		expect(expandHosts([])).to.deep.equal([])
		expect(onList([], 'ok.example')).to.equal(false)
		for (const entry of ['*', '', '  ', '*.', '**', '*.com', '.', 'com'])
			expect(expandHosts([entry]), entry).to.have.property('error')
	})

	it('presets mean their hosts, each of which is a name; together with hosts, each once', () => {
		for (const name of presetNames) expect(list(name).length, name).to.be.at.least(2)
		for (const host of list(...presetNames))
			expect(canonicalHost(host.replace('*.', ''))).to.equal(host.replace('*.', ''))
		const hosts = list('npm', 'Ok.Example.', '*.Ok.example', 'registry.npmjs.org')
		expect(hosts).to.include.members(['registry.npmjs.org', 'ok.example', '*.ok.example'])
		expect(hosts).to.have.length(new Set(hosts).size)
		// A name of an object's own is no preset.
		for (const entry of ['constructor', '__proto__', 'toString', 'NPM'])
			expect(expandHosts([entry])).to.have.property('error')
	})

	it('an entry that is none is named: addresses, ports, addresses of pages', () => {
		for (const entry of [
			'10.0.0.1',
			'*.10.0.0.1',
			'a.example:443',
			'https://a.example',
			'a.example/x',
			'*a.example',
			'a.*.example',
		])
			expect(expandHosts(['ok.example', entry]))
				.to.have.property('error')
				.that.includes(JSON.stringify(entry).slice(1, -1))
	})

	it('the note for the model names each host; none without a list', () => {
		expect(networkNote(['a.example', '*.b.example'])).to.include('a.example, *.b.example')
		expect(networkNote([])).to.equal('')
	})
})
