// What must be true before anything runs: installed as the lock says, built from these very bytes.
// Runs on the system's Node (20 too): plain builtins, older syntax.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

const json = (file) => JSON.parse(readFileSync(file, 'utf8'))

const digest = (files, cut) => {
	const sum = createHash('sha256')
	for (const file of files) {
		const bytes = readFileSync(file)
		sum.update(`${file.slice(cut)}\0${bytes.length}\0`)
		sum.update(bytes)
	}
	return sum.digest('hex')
}

const files = (folder) =>
	readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
		const path = `${folder}/${entry.name}`
		return entry.isDirectory() ? files(path) : [path]
	})

const sameFields = (lock, root) =>
	['dependencies', 'devDependencies', 'optionalDependencies'].every(
		(field) =>
			JSON.stringify(Object.entries(root[field] || {}).sort()) ===
			JSON.stringify(Object.entries(lock[''][field] || {}).sort()),
	)

/** Do package.json and the lock name the same dependencies? */
export const lockFits = () => sameFields(json('package-lock.json').packages, json('package.json'))

/** Is node_modules what the lock says? npm writes its own record last, so a broken install has none. */
export function installed() {
	try {
		const want = json('package-lock.json').packages
		const have = json('node_modules/.package-lock.json').packages
		if (!sameFields(want, json('package.json'))) return false
		for (const [path, entry] of Object.entries(want)) {
			if (path === '') continue
			const got = have[path]
			if (!got) {
				if (!entry.optional && !entry.devOptional) return false
			} else if (got.version !== entry.version || got.integrity !== entry.integrity) return false
		}
		const pin = `node_modules/node-${process.platform}-${process.arch}`
		return !want[pin] || existsSync(`${pin}/package.json`)
	} catch {
		return false
	}
}

/** The hash of all that a build reads. */
export const inputs = () =>
	digest(
		[...files('src').sort(), 'package.json', 'package-lock.json', 'tsconfig.json', ...files('scripts/build').sort()],
		0,
	)

/** The hash of a build's result, wherever its folder lies. */
export const outputs = (dist) =>
	digest(
		files(dist)
			.filter((file) => !file.endsWith('/stamp.json'))
			.sort(),
		dist.length,
	)

/** Is dist made from these sources, and untouched since? Contents count, not times. */
export function built() {
	try {
		const stamp = json('dist/stamp.json')
		return stamp.inputs === inputs() && stamp.outputs === outputs('dist')
	} catch {
		return false
	}
}

/** Is the committed manifest the one of this build? */
export const manifestFresh = () =>
	existsSync('oclif.manifest.json') &&
	readFileSync('oclif.manifest.json', 'utf8') === readFileSync('dist/oclif.manifest.json', 'utf8')
