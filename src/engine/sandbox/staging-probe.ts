// Proves an overlay before the first staged command relies on it: what is done in one is read back as exactly that.
import { execFile } from 'node:child_process'
import { linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../errors.ts'
import { remove, usualLimits } from './staging-copy.ts'
import { OverlayStage, type OverlayTools, overlayFailed, overlayPrefix } from './staging-overlay.ts'
import { listOverlay } from './staging-overlay-list.ts'

const files = [
	'keep',
	'change',
	'gone',
	'moved',
	'mode',
	'twin',
	'dir/keep',
	'dir/gone',
	'dir/deep/change',
	'anew/old',
	'tree/a/b',
]

const script = `
echo more >> change
rm gone dir/gone
mv moved moved2
chmod 600 mode
ln -sf change link
echo more >> twin2
echo more >> dir/deep/change
rm -r anew; mkdir anew; echo new > anew/new
mv tree tree2
touch keep
rm keep2; mkdir keep2
`

const expected = [
	...[
		'delete gone',
		'delete moved',
		'delete tree',
		'delete tree/a',
		'delete tree/a/b',
		'delete anew/old',
		'create anew/new',
	],
	...['change change', 'change dir/deep/change', 'delete dir/gone', 'delete keep2', 'create keep2', 'change link'],
	...['change mode', 'create moved2', 'create tree2', 'create tree2/a', 'create tree2/a/b', 'change twin2'],
].sort()

/** Rejects with an Error that says what is missing or odd. `folder` is made, and removed after. */
export const probeOverlay = async (tools: OverlayTools, folder: string): Promise<void> => {
	const lower = join(folder, 'scratch')
	const at = (path: string) => join(lower, path)
	try {
		for (const path of [...files, 'keep2']) {
			mkdirSync(dirname(at(path)), { recursive: true })
			writeFileSync(at(path), `${path}\n`, { mode: 0o644 })
		}
		linkSync(at('twin'), at('twin2'))
		symlinkSync('keep', at('link'))
		const stage = new OverlayStage(lower, join(folder, 'stage'), tools)
		await stage.begin()
		const [file, ...args] = [
			...overlayPrefix(tools, [stage.folder]),
			...[tools.sh, '-ec', `cd "$1"${script}`, 'sh', stage.merged],
		]
		try {
			await promisify(execFile)(file!, args, { env: { PATH: '/usr/bin:/bin' }, cwd: '/', timeout: 10_000 })
		} catch (error) {
			const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
			const said = `${stderr}${stdout}`.replace(overlayFailed, '').trim().slice(0, 300)
			throw new Error(`no overlay can be mounted (${said || messageOf(error).slice(0, 300)})`)
		}
		const list = await listOverlay(stage, () => false, new Set(), usualLimits)
		const found = list.changes.map(({ kind, path }) => `${kind} ${path}`).sort()
		const odd = [
			...list.refused.map(({ path, why }) => `${path}: ${why}`),
			...expected.filter((line) => !found.includes(line)),
			...found.filter((line) => !expected.includes(line)),
			...files.filter((path) => readFileSync(at(path), 'utf8') !== `${path}\n`),
		]
		if (odd.length > 0)
			throw new Error(`an overlay does not show changes as expected here (${odd.slice(0, 3).join('; ')})`)
	} finally {
		await remove(folder).catch(() => {})
	}
}
