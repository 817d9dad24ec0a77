// The macOS profile word for word: what is allowed and refused by name, and in which order paths are.
import { expect } from 'chai'
import { type SeatbeltOptions, sbplString, seatbeltProfile } from '../../../src/engine/sandbox/seatbelt.ts'

const options: SeatbeltOptions = {
	roots: ['/Users/u/p'],
	home: '/Users/u',
	tmp: '/private/tmp/s',
	writable: ['/Users/u/.cache'],
	denyRead: ['/Users/u/vault'],
	protect: ['/Users/u/p/.githooks'],
	readOnly: false,
	blockUnix: false,
}
const names = [
	...['notification_center', 'opendirectoryd.libinfo', 'opendirectoryd.membership', 'logger'].map(
		(one) => `system.${one}`,
	),
	...['logd', 'trustd.agent', 'bsd.dirhelper', 'dyld.introspection'],
].map((name) => `\n  (global-name "com.apple.${name}")`)
const fixed = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read*)
(allow file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/stdout") (literal "/dev/stderr") (regex #"^/dev/fd/"))
(allow ipc-posix-sem)
(allow ipc-posix-shm (ipc-posix-name-prefix "/tmp/"))
(allow mach-lookup${names.join('')})
(deny appleevent-send)
(deny lsopen)
(deny job-creation)
(deny mach-register)
(deny system-privilege)
(deny network*)
`
const rules = (profile: string): string[] =>
	profile
		.slice(fixed.length)
		.split(/\n(?=\()/)
		.map((rule) => rule.split('\n')[0]!)
		.filter((rule) => rule !== '')

describe('sandbox: Seatbelt word for word', () => {
	it('begins with the same rules for everybody', () => {
		for (const more of [{}, { readOnly: true }, { blockUnix: true }])
			expect(seatbeltProfile({ ...options, ...more }).slice(0, fixed.length)).to.equal(fixed)
	})

	it('allows, protects and hides in this order, and a root in a hidden folder comes back protected', () => {
		const work = ['(allow file-write*', '(deny file-write*', '(deny file-write-unlink', '(deny file-read* file-write*']
		expect(rules(seatbeltProfile(options))).to.deep.equal(['(allow network-outbound network-bind', ...work])
		expect(rules(seatbeltProfile({ ...options, blockUnix: true }))).to.deep.equal(work)
		expect(rules(seatbeltProfile({ ...options, blockUnix: true, proxyPort: 8080.5 }))).to.deep.equal([
			'(allow network-outbound (remote ip "localhost:8080"))',
			...work,
		])
		expect(rules(seatbeltProfile({ ...options, blockUnix: true, readOnly: true }))).to.deep.equal(
			work.filter((one) => !one.includes('unlink')),
		)
		const back = { ...options, blockUnix: true, roots: ['/Users/u/.garuda/w'] }
		expect(rules(seatbeltProfile(back))).to.deep.equal([
			...work,
			'(allow file-read*',
			'(allow file-write*',
			'(deny file-write*',
		])
		expect(rules(seatbeltProfile({ ...back, readOnly: true }))).to.deep.equal([
			...work.filter((one) => !one.includes('unlink')),
			'(allow file-read*',
			'(deny file-write*',
		])
	})

	it('each rule names its paths', () => {
		const profile = seatbeltProfile(options)
		const paths = (start: string) => {
			const rule = profile.slice(profile.indexOf(`${start}\n`)).split(/\n(?=\()/)[0]!
			return [...rule.matchAll(/\((?:subpath|literal) "([^"]*)"\)/g)].map((match) => match[1])
		}
		for (const start of ['(allow network-outbound network-bind', '(allow file-write*'])
			expect(paths(start), start).to.deep.equal(['/Users/u/p', '/Users/u/.cache', '/private/tmp/s'])
		expect(paths('(deny file-write*')).to.include.members([
			...['hooks', 'config', 'config.worktree', 'info', 'commondir'].map((name) => `/Users/u/p/.git/${name}`),
			...['/Users/u/p/.vscode', '/Users/u/p/.githooks', '/Users/u/.zshrc'],
		])
		expect(paths('(deny file-write-unlink')).to.deep.equal(['/Users/u/p/.git'])
		expect(paths('(deny file-read* file-write*')).to.include.members(['/Users/u/.ssh', '/Users/u/vault'])
		for (const path of ['/a\nb', '/a\u0000', '/a\u007f', '/a\tb'])
			expect(() => sbplString(path)).to.throw('control character')
	})
})
