// A full disk: what keeps names in a git folder from being made is whole or not there, and the repository works on.
import { spawn, spawnSync } from 'node:child_process'
import {
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	realpathSync,
	rmSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { Placeholders } from '../../../src/engine/sandbox/placeholders.ts'
import { skip } from '../../helpers/skip.ts'

interface Seen {
	output: string
	findings: string[]
	during: string
	after: string
	left: string[]
}

describe('sandbox: a full disk', function () {
	this.timeout(60_000)
	let base: string
	beforeEach(() => {
		base = realpathSync(mkdtempSync(join(tmpdir(), 'garuda-full-')))
	})
	afterEach(() => rmSync(base, { recursive: true, force: true }))
	const node = async (argv: string[]): Promise<string> => {
		const child = spawn(argv[0]!, argv.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] })
		let said = ''
		child.stdout.on('data', (chunk) => {
			said += chunk
		})
		await new Promise((done) => child.once('close', done))
		return said
	}

	it('plant-3 every git works while a command runs and after it; the git folder is read-only, and nothing is taken for planted', async function () {
		for (const name of ['root', 'home', 'tmp']) mkdirSync(join(base, name))
		const mount = `mount -t tmpfs -o size=1m none ${base}/root`
		const able = spawnSync('unshare', [
			'-rm',
			'sh',
			'-c',
			`${mount} && bwrap --ro-bind / / --dev /dev --unshare-all true`,
		])
		if (able.status !== 0) skip(this, 'no small file system can be mounted here')
		const program = fileURLToPath(new URL('full-disk-child.ts', import.meta.url))
		const script = `${mount} && exec "$@"`
		const said = await node([
			'unshare',
			'-rm',
			'sh',
			'-c',
			script,
			'sh',
			process.execPath,
			'--import',
			'tsx',
			program,
			base,
		])
		const { full, free, empty } = JSON.parse(said) as Record<string, Seen>
		for (const [name, seen] of Object.entries({ full, free, empty } as Record<string, Seen>)) {
			expect(seen.after, name).to.not.include('FAILED')
			expect(seen.during, name).to.match(name === 'free' ? /^commondir \.$/ : /^commondir none$/)
			expect([seen.findings, seen.left], name).to.deep.equal([[], []])
			expect(seen.output, name).to.include('on').and.not.include('PLANTED')
		}
		expect(full!.output)
			.to.include('made')
			.and.match(/Read-only/)
			.and.include('[note: the disk is full')
		expect(free!.output)
			.to.include('made')
			.and.match(/Read-only/)
			.and.not.include('[note: the disk is full')
	})

	it('what can be told to no other session is not made, and its folder is given for keeping', async () => {
		const own = join(base, `s-${process.pid}-own-a`)
		mkdirSync(own)
		mkdirSync(join(base, 'git'))
		writeFileSync(join(own, 'held'), 'before')
		const module = new URL('../../../src/engine/sandbox/placeholders.ts', import.meta.url).href
		const code = `const { Placeholders } = await import(${JSON.stringify(module)})
const shut = []
new Placeholders(${JSON.stringify(own)}).hold([{ path: ${JSON.stringify(join(base, 'git/commondir'))}, text: '.' }, { path: ${JSON.stringify(join(base, 'git/config.worktree'))}, text: '' }], (folder) => shut.push(folder))
console.log(JSON.stringify(shut))`
		// No file of this process may get a byte.
		const limited = ['sh', '-c', 'ulimit -f 0; exec "$@"', 'sh', process.execPath, '--import', 'tsx']
		const shut = JSON.parse(await node([...limited, '--input-type=module', '-e', code]))
		expect(new Set(shut)).to.deep.equal(new Set([join(base, 'git')]))
		expect(readdirSync(join(base, 'git'))).to.deep.equal([])
		expect([readdirSync(own), readFileSync(join(own, 'held'), 'utf8')]).to.deep.equal([['held'], 'before'])
	})

	it('what a kill left beside a placeholder is swept when it is old, and what is not Garuda’s stays', () => {
		const own = join(base, `s-${process.pid}-own-a`)
		mkdirSync(own)
		mkdirSync(join(base, 'git'))
		const old = '.commondir.0123456789ab.garuda-tmp'
		const names = [old, '.commondir.ba9876543210.garuda-tmp', '.commondir.garuda-tmp', `${old}2`]
		for (const name of names) writeFileSync(join(base, 'git', name), '.')
		for (const name of names.filter((name) => !name.includes('ba98'))) utimesSync(join(base, 'git', name), 1, 1)
		const release = new Placeholders(own).hold([{ path: join(base, 'git/commondir'), text: '.' }])
		release()
		expect(readdirSync(join(base, 'git')).sort()).to.deep.equal(names.filter((name) => name !== old).sort())
	})
})
