#!/usr/bin/env node
// The start of every verb: a few small things in a fixed order, then oclif. See docs/architecture.md, "The start".
// Builtins come by getBuiltinModule: an ES import of one touches every lazy part of it (3–4 ms).
const fs = process.getBuiltinModule('node:fs')
const { join } = process.getBuiltinModule('node:path')

const root = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..')
const argv = process.argv.slice(2)
let told = false
const say = (text) => fs.writeSync(2, `garuda: ${text}\n`)

await start()

async function start() {
	if (process.platform === 'win32' && argv[0] !== 'acp') {
		say('native Windows is not supported. Use WSL: run "wsl --install", then install garuda inside it.')
		process.exitCode = 1
		return
	}
	// 1. The key that this process handed to itself comes back before anything can fail or start a process.
	const handed = process.env.GARUDA_HANDOVER !== undefined
	if (handed) (await import('./handover.js')).take()
	// 2. The Node word. `acp` must answer `initialize` on an older Node too.
	const [major, minor] = process.versions.node.split('.').map(Number)
	if ((major < 22 || (major === 22 && minor < 20)) && argv[0] !== 'acp') {
		say(`needs Node 22.20 or newer; this is ${process.version}. In a checkout, "npm start" brings one along.`)
		process.exitCode = 1
		return
	}
	// 3. A key in the environment leaves it; before the compile cache, whose work would be done twice.
	const version = argv.length === 1 && (argv[0] === '--version' || argv[0] === '-v')
	if (process.platform === 'linux' && !handed && !version)
		for (const name in process.env)
			if (/_(API_KEY|AUTH_TOKEN)$/.test(name)) {
				;(await import('./handover.js')).give()
				break
			}
	//    `acp` speaks a protocol on stdout: whatever else is written there goes to stderr, from the first line on.
	if (argv[0] === 'acp' && !argv.some((word) => word === 'setup' || word === '--help' || word === '-h')) guard()
	// 4. The compile cache: in a folder that only the user can write.
	cache()
	// 5. --version needs nothing else.
	if (version) {
		const { name, version } = JSON.parse(fs.readFileSync(join(root, 'package.json'), 'utf8'))
		process.stdout.on('error', lost)
		process.stdout.write(`${name}/${version} ${process.platform}-${process.arch} node-${process.version}\n`)
		return
	}
	// 6. The words: nothing or a leading flag is the chat; `help x` is `x --help`.
	const first = argv[0]
	if (first === undefined || (first.startsWith('-') && first !== '--help' && first !== '-h')) argv.unshift('chat')
	else if (first === 'help') argv.splice(0, argv.length, ...argv.slice(1), '--help')
	if (!fs.existsSync(join(root, 'dist', 'oclif.js'))) {
		say('is not built yet: npm run build')
		process.exitCode = 1
		return
	}
	const { execute } = await import('../dist/oclif.js')
	// Its own listener throws.
	process.stdout.removeAllListeners('error').on('error', lost)
	// Not awaited: oclif's flush waits behind an unref'd timer, which a top-level await would report as unsettled.
	// Chat and acp need no plugin (help topics, completion): looking for them costs as much as all of the settings.
	const loadOptions = argv[0] === 'chat' || argv[0] === 'acp' ? { root, pjson: withoutPlugins() } : undefined
	void execute({ args: argv, dir: import.meta.url, loadOptions })
}

/** What was written did not arrive. A reader that left is no failure to tell of; each verb may listen in a way of its own. */
function lost({ code, message }) {
	if (code === 'EPIPE' || told) return
	told = true
	process.exitCode = 1
	try {
		say(`the output could not be written: ${message}`)
	} catch {
		// stderr is gone as well
	}
}

/** src/acp/stdout.ts takes the real `write` over from here. */
function guard() {
	const { stdout, stderr } = process
	stdout.write = Object.assign((...args) => stderr.write(...args), { protocol: stdout.write })
}

function withoutPlugins() {
	const pjson = JSON.parse(fs.readFileSync(join(root, 'package.json'), 'utf8'))
	pjson.oclif.plugins = []
	return pjson
}

function cache() {
	const { enableCompileCache } = process.getBuiltinModule('node:module')
	if (!enableCompileCache || process.env.NODE_DISABLE_COMPILE_CACHE) return
	const home = process.env.HOME || process.getBuiltinModule('node:os').homedir()
	let folder = process.env.GARUDA_HOME || (home && join(home, '.garuda'))
	if (!folder) return
	try {
		// One by one: a recursive mkdir never returns under /proc. Each must be ours, no link, closed to others.
		for (const part of ['', 'cache', 'compile']) {
			folder = join(folder, part)
			try {
				fs.mkdirSync(folder, 0o700)
			} catch (error) {
				if (error.code !== 'EEXIST') return
			}
			const stat = fs.lstatSync(folder)
			if (!stat.isDirectory() || stat.uid !== process.geteuid?.() || (stat.mode & 0o022) !== 0) return
		}
		enableCompileCache(folder)
	} catch {
		// no cache: only slower
	}
}
