// What is committed against what is made: the oclif manifest, and the rules for a production install.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { built, manifestFresh } from './state.mjs'

const fail = (text) => {
	console.error(text)
	process.exit(1)
}
const what = process.argv[2]
if (what === 'manifest') {
	if (!built()) fail('dist is not made from these sources: npm run build')
	if (!manifestFresh()) fail('oclif.manifest.json is stale: npm run build, look at the change, commit it')
} else if (what === 'production') {
	// No native add-on, no install script but esbuild's (which is off), exact versions only.
	const { dependencies, devDependencies, optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
	for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }))
		if (!/^(?:npm:[\w@/.-]+@)?\d+\.\d+\.\d+$/.test(version)) fail(`${name} is not pinned exactly: ${version}`)
	const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages
	const native = []
	for (const [path, entry] of Object.entries(lock)) {
		if (path === '' || entry.dev || entry.optional || entry.devOptional || !existsSync(path)) continue
		if (entry.hasInstallScript) fail(`${path} runs a script when it is installed`)
		if (entry.resolved) fail(`${path} names an address in the lock`)
		const walk = (folder) => {
			for (const one of readdirSync(folder, { withFileTypes: true }))
				if (one.isDirectory()) {
					if (one.name !== 'node_modules') walk(`${folder}/${one.name}`)
				} else if (one.name.endsWith('.node')) native.push(`${folder}/${one.name}`)
		}
		walk(path)
	}
	if (native.length > 0) fail(`native add-ons in a production install: ${native.join(', ')}`)
} else fail('drift.mjs manifest|production')
