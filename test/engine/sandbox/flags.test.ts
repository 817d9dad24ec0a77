// From a policy to bubblewrap's flags, word for word: each flag in its place, and none that is not asked for.
import { expect } from 'chai'
import { bubblewrapFlags } from '../../../src/engine/sandbox/bubblewrap.ts'
import type { Policy } from '../../../src/engine/sandbox/policy.ts'

const policy = (more: Partial<Policy> = {}): Policy => ({
	procHidden: ['/proc/keys', '/proc/timer_list'],
	base: [],
	pins: [],
	protect: [],
	masks: [],
	back: [],
	absent: [],
	absentIncludes: [],
	absentHome: [],
	emptyFile: '/own/file',
	emptyFolder: '/own/folder',
	tmpBytes: 5,
	cwd: '/w',
	env: {},
	filter: true,
	...more,
})
const before =
	'--unshare-user --unshare-all --disable-userns --cap-drop ALL --die-with-parent --new-session --hostname sandbox --ro-bind / / --dev /dev --proc /proc --remount-ro /proc --ro-bind /dev/null /proc/keys --ro-bind /dev/null /proc/timer_list'
const after = '--chdir /w --clearenv --seccomp 4 --json-status-fd 5'

describe('sandbox: flags', () => {
	const flags = (more: Partial<Policy> = {}) => bubblewrapFlags(policy(more)).join(' ')

	it('with nothing to mount only the walls are left, and each has its flag', () => {
		expect(flags()).to.equal(`${before} ${after}`)
		expect(flags({ filter: false })).to.equal(`${before} --chdir /w --clearenv --json-status-fd 5`)
		expect(flags({ network: true })).to.equal(
			`${before.replace('--disable-userns', '--disable-userns --share-net')} ${after}`,
		)
		expect(flags({ network: false })).to.not.include('--share-net')
		expect(flags({ procHidden: [] })).to.not.include('/dev/null')
		expect(flags({ env: { A: 'b c', D: '' } })).to.include('--clearenv --setenv A b c --setenv D  --seccomp')
	})

	it('mounts go shallow before deep; of one path the pin comes before the protection', () => {
		expect(
			flags({
				base: [
					{ kind: 'write', path: '/a/b', source: '/s' },
					{ kind: 'private', path: '/run' },
					{ kind: 'read', path: '/' },
				],
				pins: ['/a/b/c', '/a'],
				protect: ['/a/b/c', '/x'],
			}),
		).to.equal(
			`${before} --ro-bind / / --size 5 --tmpfs /run --bind /a /a --ro-bind /x /x --bind /s /a/b --bind /a/b/c /a/b/c --ro-bind /a/b/c /a/b/c ${after}`,
		)
	})

	it('masks lie over every mount; a root in one comes back with its own protection, and only then is the mask closed', () => {
		expect(
			flags({
				base: [{ kind: 'write', path: '/a/deep/er' }],
				masks: [
					{ path: '/h/.g', folder: true, holds: true },
					{ path: '/h/.ssh', folder: true },
					{ path: '/h/.netrc', folder: false },
				],
				back: [
					{
						path: '/h/.g/w',
						write: true,
						pins: ['/h/.g/w/.git'],
						protect: ['/h/.g/w/.git/config'],
						masks: [{ path: '/h/.g/w/.env', folder: false }],
					},
					{ path: '/h/.g/r', write: false, pins: [], protect: [], masks: [] },
				],
			}),
		).to.equal(
			[
				before,
				'--bind /a/deep/er /a/deep/er',
				'--size 65536 --tmpfs /h/.g --ro-bind /own/folder /h/.ssh --ro-bind /own/file /h/.netrc',
				'--bind /h/.g/w /h/.g/w --bind /h/.g/w/.git /h/.g/w/.git --ro-bind /h/.g/w/.git/config /h/.g/w/.git/config',
				'--ro-bind /own/file /h/.g/w/.env --ro-bind /h/.g/r /h/.g/r',
				'--remount-ro /h/.g',
				after,
			].join(' '),
		)
	})
})
