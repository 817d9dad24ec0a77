// Which addresses are this machine, which are public, which a NO_PROXY entry means.
import { expect } from 'chai'
import { isLoopback, isPublic, matchesHost } from '../../../src/engine/net/addresses.ts'

describe('addresses', () => {
	it('this machine in every spelling, and nothing that only looks like it', () => {
		for (const host of [
			'localhost',
			'LOCALHOST.',
			'a.localhost',
			'127.0.0.1',
			'127.9.9.9',
			'[::1]',
			'::1',
			'0.0.0.0',
			'::ffff:127.0.0.1',
			'[::ffff:7f00:1]',
			new URL('http://2130706433').hostname,
		])
			expect(isLoopback(host), host).to.equal(true)
		for (const host of [
			'localhost.evil.com',
			'notlocalhost',
			'128.0.0.1',
			'10.0.0.1',
			'127.0.0.1.nip.io',
			'::2',
			'1::1',
			'::ffff:8.8.8.8',
			'',
			'127.0.0',
			'127.0.0.256',
		])
			expect(isLoopback(host), host).to.equal(false)
	})

	it('public is only what is handed out on the internet', () => {
		for (const ip of [
			'8.8.8.8',
			'1.1.1.1',
			'172.32.0.1',
			'100.128.0.1',
			'2606:4700::1111',
			'[2001:4860:4860::8888]',
			'::ffff:8.8.8.8',
			'64:ff9b::808:808',
		])
			expect(isPublic(ip), ip).to.equal(true)
		for (const ip of [
			'0.0.0.0',
			'10.1.2.3',
			'100.64.0.1',
			'127.0.0.1',
			'169.254.169.254',
			'168.63.129.16',
			'172.16.0.1',
			'172.31.255.255',
			'192.0.0.1',
			'192.0.2.1',
			'192.88.99.1',
			'192.168.1.1',
			'198.18.0.1',
			'198.51.100.1',
			'203.0.113.9',
			'224.0.0.1',
			'240.0.0.1',
			'255.255.255.255',
			'::',
			'::1',
			'fe80::1',
			'fe80::1%eth0',
			'fc00::1',
			'fd12::1',
			'ff02::1',
			'2001:db8::1',
			'2001::1',
			'3fff::1',
			'::ffff:10.0.0.1',
			'::ffff:a9fe:a9fe',
			'64:ff9b::7f00:1',
			'2002:7f00:1::',
			'2002:c0a8:101::1',
			'localhost',
			'8.8.8',
			'',
			'1:2:3',
			'1::2::3',
			'12345::',
			'2606::1::2',
			'2606:4700::999.1.1.1',
			'2606:4700:1:2:3:4:5',
			'2606:4700:1:2:3:4:5:6:7',
			'2606:4700:1:2:3:4:5::6',
			'2606:4700',
		])
			expect(isPublic(ip), ip).to.equal(false)
	})

	it('Z04 NO_PROXY entries: names, suffixes, ranges, ports, *', () => {
		const yes: [string, string, number][] = [
			['*', 'x.com', 443],
			['corp', 'a.corp', 443],
			['.corp', 'a.b.corp', 443],
			['*.corp', 'a.corp', 443],
			['Example.com', 'EXAMPLE.com', 443],
			['example.com:8443', 'example.com', 8443],
			['10.0.0.0/8', '10.200.3.4', 80],
			['192.168.1.7', '192.168.1.7', 80],
			['fd00::/8', 'fd12::1', 443],
			['[fd12::1]:8080', '[fd12::1]', 8080],
		]
		for (const [entry, host, port] of yes) expect(matchesHost(entry, host, port), `${entry} ${host}`).to.equal(true)
		const nope: [string, string, number][] = [
			['corp', 'notcorp', 443],
			['.corp', 'corp.evil.com', 443],
			['example.com:8443', 'example.com', 443],
			['10.0.0.0/8', '11.0.0.1', 80],
			['10.0.0.0/8', '10.evil.com', 80],
			['0.1', '10.0.0.1', 80],
			['', 'x.com', 443],
			[' ', 'x.com..', 443],
			['fd00::/8', 'fe12::1', 443],
			['fd00::/129', 'fd00::1', 443],
			['fd00::/8', '10.0.0.1', 443],
			['10.0.0.0/99', '10.0.0.1', 80],
		]
		for (const [entry, host, port] of nope) expect(matchesHost(entry, host, port), `${entry} ${host}`).to.equal(false)
	})
})
