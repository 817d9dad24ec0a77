// The published package: the bundle, the bin, types of the engine, and a package.json made here (no Node pins, no dev
// dependencies, no scripts, nothing that is bundled). Prints the tarball's name and size. Run through npm run pack:tarball.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { built, manifestFresh } from './state.mjs'

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
if (!built() || !manifestFresh()) throw new Error('npm run build first')
const source = JSON.parse(readFileSync('package.json', 'utf8'))
const { name, version, description, license, type, bin, exports, engines, oclif } = source
const unbundled = ['@oclif/plugin-autocomplete', '@oclif/plugin-help']
const dependencies = Object.fromEntries(unbundled.map((one) => [one, source.dependencies[one]]))
const files = ['bin/run.js', 'bin/handover.js', 'dist', 'oclif.manifest.json', 'README.md', 'LICENSE', 'CHANGELOG.md']

rmSync('pack', { recursive: true, force: true })
mkdirSync('pack')
writeFileSync(
	'pack/package.json',
	`${JSON.stringify({ name, version, description, license, type, bin, exports, engines, dependencies, oclif, files }, null, 2)}\n`,
)
cpSync('bin', 'pack/bin', { recursive: true, filter: (file) => !file.endsWith('dev.js') })
cpSync('dist', 'pack/dist', {
	recursive: true,
	filter: (file) => !/dist\/(?:meta|stamp|oclif\.manifest)\.json$/.test(file),
})
for (const file of ['oclif.manifest.json', 'README.md', 'LICENSE', 'CHANGELOG.md']) cpSync(file, `pack/${file}`)
execFileSync(
	process.execPath,
	['node_modules/typescript7/bin/tsc', '-p', 'tsconfig.types.json', '--outDir', 'pack/dist/types'],
	{ stdio: ['ignore', 'inherit', 'inherit'] },
)
const tarball = execFileSync('npm', ['pack', './pack', '--silent'], { encoding: 'utf8' }).trim()
console.log(`${tarball} ${statSync(tarball).size}`)
