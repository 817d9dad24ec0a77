// What the tests of staged commands share.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { findOverlayTools } from '../../../src/engine/sandbox/staging-overlay.ts'
import { probeOverlay } from '../../../src/engine/sandbox/staging-probe.ts'

export const never: AbortSignal = new AbortController().signal

export const thrown = (work: Promise<unknown>): Promise<Error> =>
	work.then(
		() => expect.fail('expected a refusal'),
		(error) => error,
	)

/** What an apply that went wrong would leave beside its targets. */
export const leftovers = (root: string): unknown[] =>
	readdirSync(root, { recursive: true }).filter((name) => String(name).includes('garuda-tmp'))

let answer: Promise<string | undefined> | undefined

/** Why this machine has no overlays for staging (a container's own disk is one), or undefined. */
export const noOverlay = (): Promise<string | undefined> => {
	answer ??= (async () => {
		const tools = findOverlayTools()
		if (!tools) return 'a program is missing'
		const folder = mkdtempSync(join(tmpdir(), 'garuda-overlay-'))
		try {
			await probeOverlay(tools, join(folder, 'probe'))
			return undefined
		} catch (error) {
			return (error as Error).message
		} finally {
			rmSync(folder, { recursive: true, force: true })
		}
	})()
	return answer
}

/** A shell command that sets an attribute of a file; perl is there wherever Debian is, setfattr is not. */
export const setAttribute = (name: string, value: string, path: string): string => {
	const number = process.arch === 'arm64' ? 5 : 188
	return `perl -e 'my ($p, $n, $v) = @ARGV; syscall(${number}, $p, $n, $v, length $v, 0)' '${path}' ${name} '${value}'`
}
