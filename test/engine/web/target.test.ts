// Addresses from the model: which are never fetched, which are asked about each time, which are ordinary.
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import { webTarget } from '../../../src/engine/web/target.ts'
import { encodedRun } from '../../../src/engine/web/tokens.ts'

describe('web addresses', () => {
	it('never: other schemes, passwords, addresses by number in any spelling, this machine, single names', () => {
		for (const url of [
			...[
				'file:///etc/passwd',
				'ftp://ok.example/',
				'javascript:alert(1)',
				'data:text/html,x',
				'gopher://ok.example',
				'view-source:https://ok.example',
			],
			...[
				'https://user:pw@ok.example/',
				'https://ok.example@evil.example/',
				'https://:@ok.example:443@evil.example/',
				'http://a@ok.example',
			],
			...[
				'http://127.0.0.1/',
				'http://2130706433/',
				'http://0x7f000001/',
				'http://0177.0.0.1/',
				'http://127.1/',
				'http://0/',
				'http://0.0.0.0/',
			],
			...[
				'http://[::1]/',
				'http://[::ffff:127.0.0.1]/',
				'http://169.254.169.254/',
				'http://[fd00::1]/',
				'http://93.184.215.14/',
				'http://１２７.0.0.1/',
			],
			...[
				'http://localhost/',
				'http://LOCALHOST./',
				'http://a.localhost/',
				'http://metadata/',
				'http://intranet',
				'http://127。0。0。1/',
			],
			...['not an address', '', '//ok.example/x', `https://ok.example/${'a'.repeat(3_000)}`],
		])
			expect(() => webTarget(url), url).to.throw(ToolError)
	})

	it('net-22 asked each time: what could carry data out', () => {
		const env = Buffer.from('API_KEY=sk-12345\nDB=postgres://u:p@h/db').toString('base64')
		for (const url of [
			`https://new.example/?q=${env}`,
			`https://new.example/?q=${encodeURIComponent(env)}`,
			`https://new.example/${Buffer.from('some secret text here').toString('hex')}`,
			`https://new.example/${env.replaceAll('=', '').replaceAll('/', '_')}/pixel.gif`,
			`https://${Buffer.from('secret text').toString('hex')}.new.example/`,
			`https://new.example/?a=${'word+'.repeat(25)}`,
			`https://new.example/?${Array.from({ length: 30 }, (_, at) => `k${at}=v`).join('&')}`,
			`https://new.example/${env.replace(/[=/+]/g, '').replace(/.{15}/g, '$&/')}`,
			'https://new.example/?a=deadbeefdeadbeef&b=cafebabecafebabe&c=deadbeef12',
			'https://new.example:8443/',
			'https://new.example:22/',
			'https://a.b.c.d.e.f.g.example/',
			`https://new.example/${'a/'.repeat(150)}`,
			`https://new.example/${'%41%20'.repeat(20)}`,
			'https://new.example/#'.concat('x').replace('#x', '?id=QWxhZGRpbjpvcGVuIHNlc2FtZQ'),
		])
			expect(webTarget(url).unusual, url).to.be.a('string')
	})

	it('net-22 an ordinary address is not: words, versions, dates, short numbers', () => {
		for (const url of [
			'https://ok.example/',
			'https://developer.ok.example/en-US/docs/Web/JavaScript/Reference/Global_Objects/Array/flatMap',
			'https://ok.example/questions/11227809/why-is-processing-a-sorted-array-faster-than-processing-an-unsorted-array',
			'https://ok.example/nodejs/node/blob/v24.1.0/doc/api/worker_threads.md',
			'https://ok.example/search?q=typescript+strict+mode&page=2',
			'https://ok.example/blog/2024/11/30/how-we-made-it-faster.html',
			'https://ok.example/api/getServerSidePropsFromContext',
			'https://xn--mnchen-3ya.example/',
		])
			expect(webTarget(url).unusual, url).to.equal(null)
	})

	it('the fragment is not sent, http becomes https, names become A-labels', () => {
		const target = webTarget('http://MÜNCHEN.example/a?b#secret')
		expect(target.url.href).to.equal('https://xn--mnchen-3ya.example/a?b')
		expect(target).to.include({ host: 'xn--mnchen-3ya.example', port: 443, upgraded: true, loopback: false })
	})

	it('data and words are told apart', () => {
		for (const text of [
			'deadbeefdeadbeefdeadbeef',
			'QWxhZGRpbjpvcGVuIHNlc2FtZQ',
			'a8f5f167f44f4964e6c998dee827110c',
			'xK9_2mQ-8sLpZ4vB7nRt',
		])
			expect(encodedRun(text, 20), text).to.equal(text)
		for (const text of [
			'processing-a-sorted-array-faster',
			'worker_threads_and_modules',
			'getServerSidePropsFromContext',
			'ABOUT-THE-PROJECT-LICENSE',
		])
			expect(encodedRun(text, 20), text).to.equal(null)
	})
})
