// The house rules that a test can hold: ranks, cycles, owners of heavy packages, callers of the approver, what a start loads.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = globSync('src/**/*.{ts,tsx}', { cwd: root }).sort()

const source = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]))

/** Import specifiers of a file: static, type-only and dynamic. */
const imports = (text: string): { from: string; dynamic: boolean }[] => [
	...[...text.matchAll(/^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/gm)].map((m) => ({
		from: m[1]!,
		dynamic: false,
	})),
	...[...text.matchAll(/^\s*import\s*['"]([^'"]+)['"]/gm)].map((m) => ({ from: m[1]!, dynamic: false })),
	...[...text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]\s*\)/g)].map((m) => ({ from: m[1]!, dynamic: true })),
]

const local = (file: string, from: string): string | null =>
	from.startsWith('.') ? normalize(join(dirname(file), from)) : null

const folderRanks: Record<string, number> = {
	config: 1,
	net: 1,
	files: 1,
	languages: 1,
	sandbox: 2,
	model: 3,
	session: 3,
	permission: 3,
	audit: 3,
	context: 4,
	extend: 4,
	code: 4,
	web: 4,
	tools: 5,
	slash: 7,
	// services on top of the engine
	tour: 8,
	setup: 8,
	init: 8,
	jobs: 8,
	eval: 8,
	inspect: 8,
}
const fileRanks: Record<string, number> = {
	'types.ts': 0,
	'ports.ts': 0,
	'errors.ts': 0,
	'text.ts': 0,
	'look-alikes.ts': 0,
	'untrusted.ts': 0,
	'budget.ts': 0,
	'clock.ts': 0,
	'own-uid.ts': 0,
	'channel.ts': 0,
	'glob-parts.ts': 0,
	'history.ts': 0,
	'turn.ts': 6,
	'turn-model.ts': 6,
	'turn-calls.ts': 6,
	'api.ts': 0,
	'schema-check.ts': 6,
	'live-session.ts': 7,
	'session-parts.ts': 7,
	'undo-stack.ts': 7,
	'undo-words.ts': 7,
	'prompt-message.ts': 7,
	'pictures.ts': 7,
	'session-choices.ts': 7,
	'session-record.ts': 7,
	'turn-frame.ts': 7,
	'lazy-executor.ts': 7,
	'origin.ts': 7,
	'resume-session.ts': 7,
	'scripted-model.ts': 7,
	'model-choice.ts': 7,
	'assemble.ts': 7,
	'engine.ts': 7,
	'slash.ts': 7,
	'command-access.ts': 7,
	'commands.ts': 7,
	'command-prompt.ts': 7,
	'command-turn.ts': 7,
	'index.ts': 7,
}

const rank = (file: string): number | null => {
	const parts = file.split('/').slice(2)
	return (parts.length === 1 ? fileRanks[parts[0]!] : folderRanks[parts[0]!]) ?? null
}
const inEngine = (file: string) => file.startsWith('src/engine/')

/** Each exception with its reason. */
const exceptions: Record<string, string> = {}

describe('architecture', () => {
	it('gives every engine file a rank', () => {
		expect(files.filter((file) => inEngine(file) && rank(file) === null)).to.deep.equal([])
	})

	it('imports go down only, types too', () => {
		const up: string[] = []
		for (const [file, text] of source) {
			if (!inEngine(file)) continue
			for (const { from } of imports(text)) {
				const target = local(file, from)
				if (!target?.startsWith('src/engine/')) continue
				const same = dirname(file) === dirname(target)
				if (rank(target)! > rank(file)! || (rank(target) === rank(file) && !same && rank(file)! > 0 && rank(file)! < 7))
					if (!exceptions[`${file} > ${target}`]) up.push(`${file} > ${target}`)
			}
		}
		expect(up).to.deep.equal([])
	})

	it('the engine imports no front end, and front ends import the engine barrel only, never each other', () => {
		const wrong: string[] = []
		for (const [file, text] of source)
			for (const { from } of imports(text)) {
				const target = local(file, from)
				if (target === null) {
					if (inEngine(file) && /^(?:@oclif|react|ink|@agentclientprotocol)/.test(from)) wrong.push(`${file} > ${from}`)
					continue
				}
				const room = (path: string) => path.split('/')[1]!
				if (inEngine(file) && !inEngine(target)) wrong.push(`${file} > ${target}`)
				if (['chat', 'acp'].includes(room(file)) && room(target) !== room(file) && target !== 'src/engine/index.ts')
					wrong.push(`${file} > ${target}`)
			}
		expect(wrong).to.deep.equal([])
	})

	it('commands hold no logic: they import a room by import() only, and stay short', () => {
		const wrong: string[] = []
		for (const [file, text] of source) {
			if (!file.startsWith('src/commands/')) continue
			for (const line of text.matchAll(/^import (?!type)[^'"]*['"](\.[^'"]+)['"]/gm))
				if (!/\/(?:base|agent-command)\.ts$/.test(line[1]!)) wrong.push(`${file} > ${line[1]}`)
			for (const line of text.matchAll(/^import [^'"]*['"](@oclif\/core)['"]/gm))
				wrong.push(`${file} > ${line[1]} (take a subpath)`)
			if (text.split('\n').length > 260) wrong.push(`${file} is long`)
		}
		expect(wrong).to.deep.equal([])
	})

	it('has no import cycles at run time', () => {
		const graph = new Map<string, string[]>()
		for (const [file, text] of source) {
			const values = text.replaceAll(/^\s*(?:import|export) type\b[^'"]*['"][^'"]+['"]/gm, '')
			graph.set(
				file,
				imports(values)
					.flatMap(({ from, dynamic }) => (dynamic ? [] : [local(file, from)!]))
					.filter((target) => target && source.has(target)),
			)
		}
		const cycles: string[] = []
		const state = new Map<string, 'open' | 'done'>()
		const visit = (file: string, path: string[]): void => {
			if (state.get(file) === 'done') return
			if (state.get(file) === 'open') {
				cycles.push([...path.slice(path.indexOf(file)), file].join(' > '))
				return
			}
			state.set(file, 'open')
			for (const next of graph.get(file) ?? []) visit(next, [...path, file])
			state.set(file, 'done')
		}
		for (const file of graph.keys()) visit(file, [])
		expect(cycles).to.deep.equal([])
	})

	it('each heavy package has one owner, and it is loaded by import() where that matters', () => {
		const owners: [RegExp, RegExp][] = [
			[/^@anthropic-ai\/sdk/, /^src\/engine\/model\/anthropic[a-z-]*\.ts$/],
			[/^undici$/, /^src\/engine\/net\/http\.ts$/],
			[/^@modelcontextprotocol\//, /^src\/engine\/extend\/mcp/],
			[/^@agentclientprotocol\//, /^src\/acp\//],
			[/^(?:react|ink)(?:\/|$)/, /^src\/chat\/ink\/.*\.tsx?$/],
			[/^(?:typescript|web-tree-sitter)$/, /^src\/engine\/code\//],
			[/^(?:node:)?child_process$/, /^src\/engine\/sandbox\//],
			[/^(?:node:)?https?$/, /^src\/engine\/net\/http\.ts$/],
			[/^unbash$/, /^src\/engine\/permission\//],
		]
		const wrong: string[] = []
		for (const [file, text] of source)
			for (const { from } of imports(text))
				for (const [name, owner] of owners) if (name.test(from) && !owner.test(file)) wrong.push(`${file} > ${from}`)
		expect(wrong).to.deep.equal([])
		for (const [file, text] of source)
			if (/getBuiltinModule\(\s*['"](?:node:)?child_process/.test(text))
				expect(file).to.match(/^src\/engine\/sandbox\//)
	})

	it('approver.ask has two callers: the gate and the trust store', () => {
		const callers = [...source].filter(([, text]) => /approver\.ask\(/i.test(text)).map(([file]) => file)
		expect(
			callers.filter((file) => !/^src\/engine\/(?:tools\/invoke|permission\/trust)\.ts$/.test(file)),
		).to.deep.equal([])
		expect(callers).to.include('src/engine/tools/invoke.ts')
	})

	it('the engine touches neither process nor console outside the sandbox room', () => {
		const allowed = /process\.getBuiltinModule\(|process\.arch\b/g
		const wrong: string[] = []
		for (const [file, text] of source) {
			if (!inEngine(file) || file.startsWith('src/engine/sandbox/')) continue
			const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '').replaceAll(allowed, '')
			if (/\bconsole\.|(?<![\w.])process\.(?!getBuiltinModule)/.test(code)) wrong.push(file)
		}
		expect(wrong).to.deep.equal([])
	})

	it('every source file begins with a line on its place', () => {
		expect(
			files.filter((file) => !/^(?:#!.*\n)?\/\/ \S/.test(source.get(file)!) && !file.endsWith('.d.ts')),
		).to.deep.equal([])
	})

	it('src has no utils, common or helpers', () => {
		expect(files.filter((file) => /\/(?:utils?|common|helpers?)(?:\/|\.ts)/.test(file))).to.deep.equal([])
	})
})

describe('what a start loads', () => {
	const heavy =
		/node_modules\/(?:@anthropic-ai|react|ink|@modelcontextprotocol|@agentclientprotocol|typescript|undici|zod|listr2)\//

	/** What is in each file of dist, by the build's own record. */
	const inputs = (): Map<string, string[]> => {
		const { outputs } = JSON.parse(readFileSync(join(root, 'dist/meta.json'), 'utf8')) as {
			outputs: Record<string, { inputs: Record<string, unknown> }>
		}
		return new Map(
			Object.entries(outputs).map(([file, one]) => [file.replace(/^[^/]*\//, ''), Object.keys(one.inputs)]),
		)
	}

	/** The files that a run of node loaded. */
	const filesOf = async (args: string[], env: Record<string, string> = {}, status = 0): Promise<string[]> => {
		const folder = mkdtempSync(join(tmpdir(), 'garuda-load-'))
		try {
			const log = join(folder, 'log')
			writeFileSync(log, '')
			mkdirSync(join(folder, '.garuda'), { mode: 0o700 })
			writeFileSync(join(folder, '.garuda/credentials'), '{"OPENAI_API_KEY":"k","ANTHROPIC_API_KEY":"k"}', {
				mode: 0o600,
			})
			const child = spawn(process.execPath, ['--import', join(root, 'test/helpers/loaded.mjs'), ...args], {
				cwd: folder,
				env: { PATH: process.env.PATH, HOME: folder, GARUDA_TEST_LOADED: log, ...env },
				stdio: ['ignore', 'ignore', 'pipe'],
			})
			let words = ''
			child.stderr.on('data', (chunk) => {
				words += chunk
			})
			const [code] = await once(child, 'close')
			expect(code, words).to.equal(status)
			const urls = readFileSync(log, 'utf8').split('\n')
			return [...new Set(urls.filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url)))]
		} finally {
			rmSync(folder, { recursive: true, force: true })
		}
	}

	/** Sources and packages whose code a run of node loaded. */
	const inside = (files: string[]): string[] =>
		files.flatMap((path) => {
			const inDist = path.split('/dist/')[1]
			return inDist === undefined ? [path] : (inputs().get(inDist) ?? [path])
		})
	const loadedBy = async (args: string[]): Promise<string[]> => inside(await filesOf(args))

	it('--help loads no SDK, React, Ink, MCP, TypeScript, undici or zod', async () => {
		const loaded = await loadedBy([join(root, 'bin/run.js'), '--help'])
		expect(loaded.some((path) => path.includes('@oclif/core'))).to.equal(true)
		expect(loaded.filter((path) => heavy.test(path))).to.deep.equal([])
		expect(loaded.filter((path) => path.startsWith('src/engine'))).to.deep.equal([])
	})

	it('chat --help loads no engine', async () => {
		const loaded = await loadedBy([join(root, 'bin/run.js'), 'chat', '--help'])
		expect(loaded.filter((path) => heavy.test(path) || path.startsWith('src/engine'))).to.deep.equal([])
	})

	/** The files of a task up to its first request, which the model's server refuses. */
	const task = async (model: string): Promise<string[]> => {
		const server = createServer((request, response) => {
			request.resume().on('end', () => response.writeHead(401).end('{"error":{"message":"no"}}'))
		})
		server.listen(0, '127.0.0.1')
		await once(server, 'listening')
		const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
		const env = { OPENAI_BASE_URL: `${url}/v1`, ANTHROPIC_BASE_URL: url }
		try {
			return await filesOf([join(root, 'bin/run.js'), '-p', 'hello', '-m', model], env, 1)
		} finally {
			server.close()
		}
	}

	it('a task loads two files of dist up to its first request, and neither zod nor the SDK', async () => {
		const files = await task('openai/gpt-test')
		// A room that every start uses belongs into the list of scripts/build/build.mjs: a file more costs a millisecond.
		const inDist = files.filter((file) => file.includes('/dist/')).map((file) => file.split('/dist/')[1])
		expect(inDist).to.deep.equal(['oclif.js', 'commands/chat.js'])
		const loaded = inside(files)
		expect(loaded).to.include.members(['src/engine/assemble.ts', 'src/engine/model/openai.ts', 'src/chat/print.ts'])
		expect(loaded.filter((path) => heavy.test(path) || path === '/undici')).to.deep.equal([])
	})

	it('a task for Claude loads the SDK’s core, no zod, and not the undici of Node', async () => {
		const loaded = inside(await task('anthropic/claude-test'))
		expect(loaded.some((path) => path.includes('@anthropic-ai/sdk/client'))).to.equal(true)
		const unwanted = /node_modules\/(?:zod|undici)\/|sdk\/(?:lib\/)?tools\/|MessageStream|^\/undici$/
		expect(loaded.filter((path) => unwanted.test(path))).to.deep.equal([])
	})

	it('no source is twice in what the chat may load, and every chunk beside it links', async () => {
		const beside = [...inputs()].filter(([file]) => file === 'commands/chat.js' || file.startsWith('chat/'))
		const sources = beside.flatMap(([, list]) => list).filter((path) => path.startsWith('src/'))
		expect(sources.length).to.be.greaterThan(100)
		expect(sources.filter((path, at) => sources.indexOf(path) !== at)).to.deep.equal([])
		const all = beside.map(([file]) => `await import(${JSON.stringify(join(root, 'dist', file))})`).join('\n')
		await filesOf(['--input-type=module', '-e', all])
	})

	it('importing the engine loads no SDK, React, Ink, MCP, TypeScript, undici, oclif or ACP', async () => {
		const loaded = await loadedBy([
			'--input-type=module',
			'-e',
			`await import(${JSON.stringify(join(root, 'dist/engine/index.js'))})`,
		])
		expect(loaded.some((path) => path.startsWith('src/engine/'))).to.equal(true)
		expect(loaded.filter((path) => heavy.test(path) || path.includes('@oclif'))).to.deep.equal([])
	})
})
