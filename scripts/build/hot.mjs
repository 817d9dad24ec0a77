// An entry as one file: it, and the rooms that every start of it uses. What only some runs need stays in chunks beside it. A
// chunk that went into the file leaves a stub of re-exports, so that no module exists twice in a process.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { build } from 'esbuild'

/**
 * An ES import of a builtin touches every lazy part of it (fs: 3–4 ms, http: all of undici); taking the names that are used does
 * not. The text is what esbuild printed, so its form is known.
 */
const directBuiltins = (text) =>
	text.replaceAll(
		/\bimport(?: ([\w$]+),?)?(?:\*as ([\w$]+) |\{([^}]*)\})?from"(node:[\w/]+)";/g,
		(_, whole, space, names, builtin) => {
			const from = `process.getBuiltinModule(${JSON.stringify(builtin)})`
			const one = [whole, space].filter(Boolean).map((name) => `const ${name}=${from};`)
			return one.join('') + (names ? `const{${names.replaceAll(/ as /g, ':')}}=${from};` : '')
		},
	)

/** The specifier of one file in another. */
const link = (from, to) => {
	const path = relative(dirname(from), to)
	return path.startsWith('.') ? path : `./${path}`
}

/** The chunks that hold these sources, and all that they import statically. */
function closure(outputs, sources) {
	const found = new Set()
	const visit = (path) => {
		if (found.has(path)) return
		found.add(path)
		for (const one of outputs[path].imports) if (one.kind === 'import-statement' && outputs[one.path]) visit(one.path)
	}
	for (const source of sources) {
		const homes = Object.keys(outputs).filter(
			(path) => outputs[path].entryPoint === source || source in outputs[path].inputs,
		)
		if (homes.length === 0) throw new Error(`${source} is in no chunk: look at the rooms in build.mjs`)
		for (const path of homes) visit(path)
	}
	return found
}

const clause = (pairs, from) =>
	`export{${pairs.map(([a, b]) => `${a} as ${b}`).join(',')}}from${JSON.stringify(from)};\n`

/**
 * From a split build of one entry (`options` of esbuild) to files in `outdir`: the entry with the chunks of `rooms` in it, the
 * other chunks, stubs. Resolves with a metafile in which the inputs of all that went into the entry's file are its own.
 */
export async function oneFile({ options, entry, rooms, banner, finish }) {
	const { outdir } = options
	const { metafile, outputFiles } = await build({
		...options,
		entryPoints: entry,
		splitting: true,
		write: false,
		lineLimit: undefined,
	})
	const { outputs } = metafile
	const texts = new Map(outputFiles.map(({ path, text }) => [relative(process.cwd(), path), text]))
	const [name, source] = Object.entries(entry)[0]
	const main = join(outdir, `${name}.js`)
	const hot = closure(outputs, [source, ...rooms])
	hot.delete(main)
	const inside = [...hot].sort()
	const renamed = (path) => outputs[path].exports.map((one) => [one, `h${inside.indexOf(path)}_${one}`])

	const start = [
		'import{$late}from"garuda-late";',
		clause(
			outputs[main].exports.map((one) => [one, one]),
			`./${main}`,
		),
		...inside.flatMap((path, i) => [
			outputs[path].exports.length > 0 ? clause(renamed(path), `./${path}`) : '',
			`import*as $n${i} from${JSON.stringify(`./${path}`)};$late[${i}]=$n${i};\n`,
		]),
	]
	// What a chunk imports dynamically may be in the file already: then it is handed the name space, once all have run.
	const rewritten = (path) =>
		`import{$late}from"garuda-late";${directBuiltins(texts.get(path)).replaceAll(
			/\bimport\("(\.[^"]+)"\)/g,
			(whole, to) => {
				const at = inside.indexOf(join(dirname(path), to))
				return at < 0 ? whole : `Promise.resolve($late[${at}])`
			},
		)}`
	const merge = {
		name: 'merge',
		setup(build) {
			build.onResolve({ filter: /^garuda-late$/ }, ({ path }) => ({ path, namespace: 'late' }))
			build.onLoad({ filter: /./, namespace: 'late' }, () => ({ contents: 'export const $late=[]' }))
			build.onResolve({ filter: /^\.{1,2}\// }, ({ path, importer, namespace }) => {
				const file = relative(process.cwd(), resolve(namespace === 'chunk' ? dirname(importer) : '.', path))
				if (file === main || hot.has(file)) return { path: file, namespace: 'chunk' }
				return { path: link(main, file), external: true }
			})
			build.onLoad({ filter: /./, namespace: 'chunk' }, ({ path }) => ({ contents: rewritten(path), loader: 'js' }))
		},
	}
	const { outputFiles: merged } = await build({
		...options,
		stdin: { contents: start.join(''), resolveDir: process.cwd(), sourcefile: 'start', loader: 'js' },
		outdir: undefined,
		outfile: main,
		entryNames: undefined,
		chunkNames: undefined,
		alias: undefined,
		external: [...options.external, 'garuda:*'],
		plugins: [merge],
		banner: { js: banner },
		write: false,
	})

	const put = (path, text) => {
		mkdirSync(dirname(path), { recursive: true })
		writeFileSync(path, finish(path, text))
	}
	const text = merged[0].text
	const missed = /\bfrom\s*"node:/.exec(text)
	if (missed)
		throw new Error(`${main}: a builtin is still imported: ${text.slice(missed.index - 80, missed.index + 40)}`)
	put(main, text)
	for (const path of Object.keys(outputs)) {
		if (path === main) continue
		if (!hot.has(path)) {
			put(path, banner + texts.get(path))
			continue
		}
		const back = renamed(path).map(([a, b]) => [b, a])
		put(path, back.length > 0 ? clause(back, link(path, main)) : `import${JSON.stringify(link(path, main))};\n`)
		Object.assign(outputs[main].inputs, outputs[path].inputs)
		outputs[path].inputs = {}
	}
	return metafile
}
