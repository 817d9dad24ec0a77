// npm start, npm test, npm run check: installs and builds only what is missing or changed. Speaks on stderr only.
// Runs on the system's Node (20 too). `--test` also type-checks and refuses a stale manifest.
import { spawn, spawnSync } from 'node:child_process'
import {
	copyFileSync,
	existsSync,
	linkSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	unlinkSync,
	writeFileSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { built, installed, lockFits, manifestFresh } from './state.mjs'

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
const testing = process.argv.includes('--test')
const say = (text) => process.stderr.write(`garuda: ${text}\n`)
const fail = (text) => {
	say(text)
	process.exit(1)
}

let child
let stopped
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'])
	process.on(name, () => {
		stopped = stopped || name
		// Ctrl-C reaches the child by the process group; its end is awaited, else a next start races with its writes.
		if (child && name !== 'SIGINT') child.kill(name)
	})

const run = (command, args) =>
	new Promise((done) => {
		// stdin stays whole for the chat; NODE_ENV and NODE_OPTIONS of the caller must not shape the install.
		const env = Object.assign({}, process.env, { NODE_ENV: '', NODE_OPTIONS: '' })
		child = spawn(command, args, { stdio: ['ignore', 2, 2], env })
		child.on('error', () => done(false))
		child.on('close', (code) => {
			child = undefined
			if (stopped) process.exit(130)
			done(code === 0)
		})
	})

function npm(args) {
	const cli = process.env.npm_execpath
	return cli && /npm-cli\.js$/.test(cli)
		? run(process.env.npm_node_execpath || process.execPath, [cli, ...args])
		: run('npm', args)
}

/** The Node that builds and tests: the one of the lock, else the system's when it is new enough. */
function node() {
	const locked = resolve('node_modules/.bin/node')
	if (existsSync(locked)) {
		if (spawnSync(locked, ['-v']).status === 0) return locked
		renameSync(locked, `${locked}.unusable`) // built for another C library
	}
	const [major, minor] = process.versions.node.split('.').map(Number)
	if (major > 22 || (major === 22 && minor >= 20)) return process.execPath
	return fail(`needs Node 22.20 or newer; this is ${process.version}, and no Node could be installed here`)
}

/** One set-up at a time in this folder; a dead or 15 minutes old holder is taken over. */
async function alone(work) {
	const lock = '.ready.lock'
	const own = `${lock}.${process.pid}`
	for (let told = false; ; ) {
		try {
			writeFileSync(own, String(process.pid))
			linkSync(own, lock)
			unlinkSync(own)
			break
		} catch (error) {
			rmSync(own, { force: true })
			if (error.code !== 'EEXIST') throw error
		}
		if (stale(lock)) continue
		if (!told) say('waiting for another start to finish its set-up')
		told = true
		await new Promise((done) => setTimeout(done, 200))
		if (stopped) process.exit(130)
	}
	process.on('exit', () => rmSync(lock, { force: true }))
	await work()
}

function stale(lock) {
	try {
		const pid = Number(readFileSync(lock, 'utf8'))
		let alive = true
		try {
			process.kill(pid, 0)
		} catch (error) {
			alive = error.code === 'EPERM'
		}
		if (alive && Date.now() - statSync(lock).mtimeMs < 900_000) return false
		rmSync(lock, { force: true })
	} catch {
		// it is gone: try again
	}
	return true
}

async function bubblewrap() {
	if (process.platform !== 'linux' || ['/usr/bin/bwrap', '/bin/bwrap'].some((path) => existsSync(path))) return
	const install = 'apt-get install -y bubblewrap'
	if (process.getuid && process.getuid() === 0 && existsSync('/usr/bin/apt-get')) {
		say('installing bubblewrap, the sandbox of every command')
		process.env.DEBIAN_FRONTEND = 'noninteractive'
		const quiet = ['-qq', '-o', 'Dpkg::Use-Pty=0']
		if (await run('apt-get', [...quiet, 'install', '-y', 'bubblewrap'])) return
		await run('apt-get', [...quiet, 'update'])
		if (await run('apt-get', [...quiet, 'install', '-y', 'bubblewrap'])) return
	}
	say(`bubblewrap is missing: without it every command asks first. Install it: sudo ${install}`)
}

if (!installed() || !built())
	await alone(async () => {
		if (!installed()) {
			if (!lockFits()) fail('package.json and package-lock.json name different dependencies: run npm install')
			say('installing (once, about a minute)')
			rmSync('node_modules', { recursive: true, force: true, maxRetries: 5 })
			const flags = ['--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error']
			if (!(await npm(['ci', ...flags]))) fail('npm ci failed')
			if (!installed()) fail('npm ci ended well, but node_modules is not what the lock says')
		}
		if (!built()) {
			say('building')
			if (!(await run(node(), ['scripts/build/build.mjs']))) fail('the build failed')
		}
	})
if (!manifestFresh()) {
	if (testing) fail('oclif.manifest.json is stale: npm run build, look at the change, commit it')
	copyFileSync('dist/oclif.manifest.json', 'oclif.manifest.json')
	say('wrote oclif.manifest.json: commit it')
}
await bubblewrap()
if (testing && !(await run(node(), ['node_modules/typescript7/bin/tsc']))) fail('type errors')
process.exit()
