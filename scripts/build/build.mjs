// esbuild makes the only dist: one entry a command, the engine, its workers; then the manifest from that very dist.
// Run through scripts/ready.mjs, which decides whether it is needed.
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'
import { build } from 'esbuild'
import { inputs, outputs } from '../state.mjs'
import { oneFile } from './hot.mjs'

const temporary = `dist-${process.pid}`

/** zod's messages in 50 languages are a third of its code, and only English is shown. */
const oneLanguage = {
	name: 'one-language',
	setup(build) {
		build.onResolve({ filter: /locales\/index\.js$/ }, ({ importer }) =>
			/[\\/]zod[\\/]/.test(importer) ? { path: 'locales', namespace: 'none', sideEffects: false } : null,
		)
		build.onLoad({ filter: /^locales$/, namespace: 'none' }, () => ({ contents: 'export {}' }))
	},
}

/** The SDK's requests are carried by net/http.ts; the global Headers that it makes on the way would load all of undici. */
const ownHeaders = {
	name: 'own-headers',
	setup(build) {
		const own = resolve('src/engine/model/anthropic-headers.ts')
		build.onLoad({ filter: /[\\/]@anthropic-ai[\\/]sdk[\\/].*\.mjs$/ }, ({ path }) => {
			const text = readFileSync(path, 'utf8')
			if (!/\bHeaders\b/.test(text)) return null
			return { contents: `import{Headers}from${JSON.stringify(own)};${text}`, loader: 'js' }
		})
	},
}

/** What oclif needs only where there is no manifest, or for a template in a help text: evaluated when a name of it is first used. */
const atFirstUse = {
	name: 'at-first-use',
	setup(build) {
		build.onResolve(
			{ filter: /^(?:tinyglobby|minimatch|ejs)$/ },
			async ({ path, resolveDir, importer, pluginData }) => {
				if (pluginData === 'real' || !/[\\/]@oclif[\\/]/.test(importer)) return null
				const real = await build.resolve(path, { resolveDir, importer, kind: 'require-call', pluginData: 'real' })
				return { path: real.path, namespace: 'late' }
			},
		)
		build.onLoad({ filter: /./, namespace: 'late' }, ({ path }) => ({
			contents: `module.exports=new Proxy({},{get:(_,name)=>name==='__esModule'?undefined:require(${JSON.stringify(path)})[name]})`,
			resolveDir: dirname(path),
		}))
	},
}

const shared = 'garuda:oclif'
/** One oclif for all: command classes take it from the file that bin/run.js has loaded. */
const oneOclif = {
	name: 'one-oclif',
	setup(build) {
		build.onResolve({ filter: /^@oclif\/core\/(?:command|flags)$/ }, ({ importer }) =>
			/[\\/]src[\\/]/.test(importer) ? { path: shared, external: true } : null,
		)
		// Its names are those of the flags, so it is an object there.
		build.onResolve({ filter: /^@oclif\/core\/args$/ }, ({ path }) => ({ path, namespace: 'args' }))
		build.onLoad({ filter: /./, namespace: 'args' }, () => ({
			contents: `import{Args}from"${shared}";export const{boolean,custom,directory,file,integer,string,url}=Args`,
		}))
		build.onResolve({ filter: /^garuda:/ }, ({ path }) => ({ path, external: true }))
	},
}

const banner =
	"const{createRequire:$cr}=process.getBuiltinModule('node:module'),{fileURLToPath:$fu}=process.getBuiltinModule('node:url'),require=$cr(import.meta.url),__filename=$fu(import.meta.url),__dirname=__filename.slice(0,__filename.lastIndexOf('/'));"

const options = (outdir) => ({
	outdir,
	bundle: true,
	format: 'esm',
	platform: 'node',
	target: 'node20',
	entryNames: '[dir]/[name]',
	legalComments: 'none',
	metafile: true,
	logLevel: 'warning',
	jsx: 'automatic',
	minifySyntax: true,
	minifyWhitespace: true,
	// Node shows the whole line at a crash.
	lineLimit: 200,
	define: { 'process.env.NODE_ENV': '"production"' },
	alias: { 'wsl-utils': './scripts/build/wsl.mjs', debug: './scripts/build/debug.mjs' },
	external: ['typescript'],
})

/** Entries in the folders of dist they go to, by their files in src. */
function entries(patterns) {
	const found = {}
	for (const pattern of patterns)
		for (const file of globSync(pattern)) found[file.slice('src/'.length, -'.ts'.length)] = file
	return found
}

/** What each start of the chat uses, beside its static imports: one file holds all of it, for a file more costs a millisecond. */
const rooms = [
	'src/engine/index.ts',
	'src/chat/run.ts',
	'src/chat/print.ts',
	'src/engine/assemble.ts',
	'src/engine/model/index.ts',
	'src/engine/model/openai.ts',
	'src/engine/net/http.ts',
	'src/engine/session/journal.ts',
	'src/engine/audit/log.ts',
	'src/engine/audit/witness.ts',
	'src/engine/session/snapshots.ts',
	'src/engine/sandbox/index.ts',
]

async function bundle(outdir) {
	const split = entries(['src/commands/**/*.ts', 'src/hooks/*.ts', 'src/engine/**/*-worker.ts'])
	// A worker's chunk is looked for beside the chunk that starts it: workers lie in one known folder.
	for (const key of Object.keys(split))
		if (key.endsWith('-worker')) {
			split[`workers/${key.slice(key.lastIndexOf('/') + 1)}`] = split[key]
			delete split[key]
		}
	const chat = { 'commands/chat': split['commands/chat'] }
	const library = { 'engine/index': 'src/engine/index.ts' }
	delete split['commands/chat']

	const finish = (path, text) => {
		const up = '../'.repeat(relative(outdir, path).split(sep).length - 1) || './'
		return text.replaceAll(`"${shared}"`, `"${up}oclif.js"`)
	}
	const whole = async (more) => {
		const { metafile, outputFiles } = await build({ ...options(outdir), banner: { js: banner }, write: false, ...more })
		for (const { path, text } of outputFiles) {
			mkdirSync(dirname(path), { recursive: true })
			writeFileSync(path, finish(path, text))
		}
		return metafile
	}
	const plugins = [oneLanguage, oneOclif, ownHeaders]
	const alone = (entry, folder, rooms) =>
		oneFile({
			options: { ...options(outdir), chunkNames: `${folder}/[name]-[hash]`, plugins },
			entry,
			rooms,
			banner,
			finish,
		})
	const metas = await Promise.all([
		whole({ entryPoints: split, splitting: true, chunkNames: 'chunks/[name]-[hash]', plugins }),
		whole({ entryPoints: { oclif: 'scripts/build/oclif.mjs' }, plugins: [atFirstUse] }),
		alone(chat, 'chat', rooms),
		alone(library, 'engine', []),
	])
	const metafile = { inputs: {}, outputs: {} }
	for (const meta of metas) for (const part of ['inputs', 'outputs']) Object.assign(metafile[part], meta[part])
	return { metafile }
}

/** oclif's own manifest of the built commands; paths as they will be in dist. */
async function manifest(dist) {
	const { Plugin } = await import('@oclif/core')
	const pjson = JSON.parse(readFileSync('package.json', 'utf8'))
	const plugin = new Plugin({
		root: process.cwd(),
		isRoot: true,
		ignoreManifest: true,
		errorOnManifestCreate: true,
		respectNoCacheDefault: true,
		pjson: { ...pjson, oclif: { ...pjson.oclif, commands: `./${dist}/commands` } },
	})
	await plugin.load()
	for (const command of Object.values(plugin.manifest.commands)) command.relativePath[0] = 'dist'
	// In one order, whatever order the folders were read in.
	const commands = Object.fromEntries(Object.entries(plugin.manifest.commands).sort(([a], [b]) => (a < b ? -1 : 1)))
	return `${JSON.stringify({ ...plugin.manifest, commands }, null, 2)}\n`
}

const before = inputs()
try {
	const { metafile } = await bundle(temporary)
	writeFileSync(`${temporary}/oclif.manifest.json`, await manifest(temporary))
	writeFileSync(`${temporary}/meta.json`, JSON.stringify(metafile))
	if (inputs() !== before) throw new Error('a source changed during the build: build again')
	writeFileSync(`${temporary}/stamp.json`, JSON.stringify({ inputs: before, outputs: outputs(temporary) }))
	// The old dist steps aside before the new one steps in, so that no start sees half of each.
	const old = `dist-old-${process.pid}`
	if (existsSync('dist')) renameSync('dist', old)
	renameSync(temporary, 'dist')
	rmSync(old, { recursive: true, force: true })
} finally {
	rmSync(temporary, { recursive: true, force: true })
}
