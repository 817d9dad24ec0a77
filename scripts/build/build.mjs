// esbuild makes the only dist: one entry a command, the engine, its workers; then the manifest from that very dist.
// Run through scripts/ready.mjs, which decides whether it is needed.
import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { build } from 'esbuild'
import { inputs, outputs } from '../state.mjs'

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

async function bundle(outdir) {
	const entryPoints = { oclif: '@oclif/core/execute', 'engine/index': 'src/engine/index.ts' }
	for (const pattern of ['src/commands/**/*.ts', 'src/hooks/*.ts', 'src/engine/**/*-worker.ts'])
		for (const file of globSync(pattern)) entryPoints[file.slice('src/'.length, -'.ts'.length)] = file
	// A worker's chunk is looked for beside the chunk that starts it: workers lie in one known folder.
	for (const key of Object.keys(entryPoints))
		if (key.endsWith('-worker')) {
			entryPoints[`workers/${key.slice(key.lastIndexOf('/') + 1)}`] = entryPoints[key]
			delete entryPoints[key]
		}
	return build({
		entryPoints,
		outdir,
		bundle: true,
		splitting: true,
		format: 'esm',
		platform: 'node',
		target: 'node20',
		chunkNames: 'chunks/[name]-[hash]',
		entryNames: '[dir]/[name]',
		legalComments: 'none',
		metafile: true,
		logLevel: 'warning',
		jsx: 'automatic',
		minifySyntax: true,
		minifyWhitespace: true,
		define: { 'process.env.NODE_ENV': '"production"' },
		alias: { 'wsl-utils': './scripts/build/wsl.mjs', debug: './scripts/build/debug.mjs' },
		plugins: [oneLanguage],
		external: ['typescript'],
		banner: {
			js: "const{createRequire:$cr}=process.getBuiltinModule('node:module'),{fileURLToPath:$fu}=process.getBuiltinModule('node:url'),require=$cr(import.meta.url),__filename=$fu(import.meta.url),__dirname=__filename.slice(0,__filename.lastIndexOf('/'));",
		},
	})
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
	return `${JSON.stringify(plugin.manifest, null, 2)}\n`
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
