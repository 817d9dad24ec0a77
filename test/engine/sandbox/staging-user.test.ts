// Staging as an ordinary user: the same overlay in a space of users of its own, in which files of others cannot be changed.
import {
	chmodSync,
	chownSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	statSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { skip } from '../../helpers/skip.ts'
import { asNobody, readableCopy } from './copy.ts'
import { put } from './fixture.ts'
import type { StagedOutcome } from './staging-driver.ts'
import { noOverlay } from './staging-kit.ts'

const nobody = 65_534

describe('sandbox: staging as an ordinary user', function () {
	this.timeout(60_000)
	let copy: string
	let base: string
	before(function () {
		if (process.getuid?.() !== 0 || noOverlay()) return skip(this, 'root and an overlay are needed')
		copy = readableCopy()
	})
	after(() => copy && rmSync(copy, { recursive: true, force: true }))
	beforeEach(() => {
		base = mkdtempSync(join(copy, 'tmp/case-'))
		for (const [path, content] of [
			['root/f.txt', 'x\n'],
			['root/dir/in', '1\n'],
			['root/dir/two', '1\n'],
			['root/.vscode/tasks.json', '{}'],
		] as const)
			put(join(base, path), content)
		give('.', nobody, nobody)
	})
	afterEach(() => rmSync(base, { recursive: true, force: true }))
	const at = (path: string) => join(base, 'root', path)
	const give = (path: string, uid: number, gid: number) => {
		for (const name of ['', ...readdirSync(join(base, path), { recursive: true }).map(String)])
			chownSync(join(base, path, name), uid, gid)
	}
	const run = (scripts: string[], network = '', session = 'session'): StagedOutcome[] => {
		const { stdout, stderr } = asNobody(copy, [
			'staged',
			...['root', 'home', session].map((name) => join(base, name)),
			network,
			...scripts,
		])
		expect(stdout, stderr).to.match(/^\[/)
		return JSON.parse(stdout)
	}

	it('it is itself in the sandbox, without rights, and its changes come back', () => {
		const [first, second] = run([
			'id -u; id -g; grep -E "CapEff|CapBnd|NoNewPrivs" /proc/self/status; unshare -U true 2>&1 | head -c 8; echo; stat -c %u:%g f.txt .',
			'echo 2 > f.txt; rm -r dir; mkdir dir; echo n > dir/new; chmod 600 f.txt; echo evil > .vscode/tasks.json',
		]) as [StagedOutcome, StagedOutcome]
		expect(first.output).to.match(
			/^65534\n65534\nCapEff:\t0+\nCapBnd:\t0+\nNoNewPrivs:\t1\nunshare:\n65534:65534\n65534:65534\n$/,
		)
		expect([first.changes, second.refused]).to.deep.equal([[], ['.vscode/tasks.json: protected from commands']])
		expect(second.changes).to.deep.equal(['delete dir/in', 'delete dir/two', 'create dir/new', 'change f.txt'])
		expect([readFileSync(at('f.txt'), 'utf8'), readdirSync(at('dir'))]).to.deep.equal(['2\n', ['new']])
		const { uid, mode } = statSync(at('f.txt'))
		expect([uid, mode & 0o777, readFileSync(at('.vscode/tasks.json'), 'utf8')]).to.deep.equal([nobody, 0o600, '{}'])
		expect(
			readdirSync(base).filter((name) => name.includes('-own-')),
			'nothing is left, not even what its owner cannot open',
		).to.deep.equal([])
	})

	it('the network’s space and the overlay’s go together', () => {
		const [one] = run(['exec 3<>/dev/tcp/127.0.0.1/3128 && echo proxy; id -u; echo 2 > f.txt'], 'network')
		expect([one!.output, one!.changes]).to.deep.equal(['proxy\n65534\n', ['change f.txt']])
	})

	it('job-10 as uid 0 of the space that mounts it can do no more', () => {
		const [one] = run([
			'mknod w c 0 0 2>&1 | tail -c 14; mount -t tmpfs none . 2>&1 | head -c 6; echo; chown 0 f.txt 2>&1 | head -c 6; echo; ls /proc/1/root/proc >/dev/null && cat /proc/self/uid_map',
		])
		expect(one!.output).to.match(/not permitted\nmount:\nchown:\n\s+65534\s+\d+\s+1\n$/)
		expect([one!.changes, one!.refused]).to.deep.equal([[], []])
	})

	it('where files belong to others, commands work on a copy, and that is said', () => {
		put(at('theirs'), 'theirs\n')
		chmodSync(at('theirs'), 0o666)
		const [one, two] = run(['echo mine >> theirs; echo n > new', 'cat theirs']) as [StagedOutcome, StagedOutcome]
		expect(one.output).to.match(/^\[note: staged commands work on a copy .*another owner or group\]\n$/)
		expect([one.changes, two.output]).to.deep.equal([['create new', 'change theirs'], 'theirs\nmine\n'])
	})

	it('one deep in the project: the write fails as a whole, and the next command works on a copy', () => {
		put(at('dir/theirs'), 'theirs\n')
		chmodSync(at('dir/theirs'), 0o666)
		const [one, two] = run(['echo mine >> dir/theirs', 'echo mine >> dir/theirs']) as [StagedOutcome, StagedOutcome]
		expect(one.output).to.match(/too large for defined.*\n\[note: a file of another owner or group/s)
		expect([one.changes, one.refused]).to.deep.equal([[], []])
		expect([two.changes, readFileSync(at('dir/theirs'), 'utf8')]).to.deep.equal([
			['change dir/theirs'],
			'theirs\nmine\n',
		])
	})

	it('what its owner may not read is refused, the rest applied', () => {
		const [one] = run([
			'mkdir shut; echo 1 > shut/x; chmod 000 shut; echo 1 > dark; chmod 000 dark; chmod 000 dir; echo 1 > ok',
		])
		expect(one!.changes).to.deep.equal(['create ok'])
		expect(one!.refused.map((line) => line.split(':')[0])).to.have.members(['shut', 'dark', 'dir'])
	})

	it('leftovers of a killed session are removed at the next start, with the folder that its owner cannot open', () => {
		// No process has this number.
		const dead = join(base, 's-4194305-aaaaaa-own-bbbbbb')
		for (const [path, mode] of [
			['overlay-0/work/work', 0o000],
			['overlay-0/upper/shut/in', 0o000],
			['stage-0/shut', 0o000],
		] as const) {
			mkdirSync(join(dead, path), { recursive: true })
			chmodSync(join(dead, path), mode)
		}
		writeFileSync(join(dead, 'overlay-0/upper/shut/x'), '')
		chmodSync(join(dead, 'overlay-0/upper/shut'), 0o000)
		const alive = join(base, `s-${process.pid}-aaaaaa-own-bbbbbb`)
		mkdirSync(alive)
		give('.', nobody, nobody)
		run(['true'])
		expect([existsSync(dead), existsSync(alive)]).to.deep.equal([false, true])
	})
})
