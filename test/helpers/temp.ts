// Temporary folders for a test, removed after it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const made: string[] = []

/** A fresh folder, by its real path. */
export function tempDir(name = 'garuda-test-'): string {
	const folder = realpathSync(mkdtempSync(join(tmpdir(), name)))
	made.push(folder)
	return folder
}

/** A root and a home of one's own, with files in the root. */
export function tempProject(files: Record<string, string | Uint8Array> = {}): { root: string; home: string } {
	const base = tempDir()
	const root = join(base, 'project')
	const home = join(base, 'home')
	mkdirSync(root)
	mkdirSync(home)
	writeFiles(root, files)
	return { root, home }
}

export function writeFiles(root: string, files: Record<string, string | Uint8Array>): void {
	for (const [path, bytes] of Object.entries(files)) {
		mkdirSync(dirname(join(root, path)), { recursive: true })
		writeFileSync(join(root, path), bytes)
	}
}

/** For `afterEach`. */
export function removeTemp(): void {
	for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
