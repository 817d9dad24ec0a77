// What the model is told of the machine: fixed for a session, so that the prompt's bytes stay the same.
import { access, constants, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { oneLine } from '../text.ts'
import { wrap } from '../untrusted.ts'
import type { ReadText } from './instructions.ts'

export interface EnvironmentInput {
	root: string
	env: Readonly<Record<string, string | undefined>>
	/** As node names it: linux, darwin. */
	platform: string
	/** Milliseconds since 1970. */
	now: number
	read: ReadText
	/** Whether a program is there; by default an executable file in a folder of PATH outside the root. */
	exists?(name: string): Promise<boolean>
}

const tools = [
	'git',
	'rg',
	'fd',
	'jq',
	'curl',
	'make',
	'node',
	'npm',
	'python3',
	'uv',
	'go',
	'cargo',
	'java',
	'mvn',
	'gradle',
	'docker',
	'gh',
]
const systems: Record<string, string> = { linux: 'Linux', darwin: 'macOS', win32: 'Windows' }

/** The environment block. Looks at names only: nothing on PATH is run, and nothing inside the root counts as a tool. */
export async function environment(input: EnvironmentInput): Promise<string> {
	const { root, env, platform, now, read } = input
	const exists = input.exists ?? (await onPath(env.PATH ?? '', root))
	const [found, branch] = await Promise.all([
		Promise.all(tools.map(async (name) => ((await exists(name)) ? name : ''))),
		gitBranch(root, read),
	])
	const date = new Date(now)
	const two = (value: number) => String(value).padStart(2, '0')
	const lines = [
		`System: ${systems[platform] ?? platform}`,
		'Shell of the bash tool: bash, a fresh one for each command',
		`Date: ${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`,
		`Working root: ${oneLine(root, 1000)}`,
		`Git: ${branch === null ? 'not a repository, or not readable' : branch}`,
		`Tools found: ${found.filter((name) => name !== '').join(', ') || 'none of the usual ones'}`,
	]
	return wrap('garuda-environment', {}, lines.join('\n'))
}

/** The branch by .git/HEAD; a worktree's .git is a file that leads to its folder, read only where the guard allows it. */
async function gitBranch(root: string, read: ReadText): Promise<string | null> {
	let head = await read(join(root, '.git', 'HEAD'))
	if (head === null) {
		const link = /^gitdir: (.+)$/m.exec((await read(join(root, '.git'))) ?? '')?.[1]?.trim()
		if (!link) return null
		head = await read(join(isAbsolute(link) ? link : join(root, link), 'HEAD'))
		if (head === null) return 'a worktree of a repository'
	}
	const name = /^ref: refs\/heads\/(.+)$/m.exec(head)?.[1]
	if (name) return `branch ${oneLine(name, 200)} at the start of the session`
	return /^[0-9a-f]{40,64}\s*$/.test(head) ? `no branch (commit ${head.slice(0, 12)})` : null
}

async function onPath(path: string, root: string): Promise<(name: string) => Promise<boolean>> {
	const base = await realpath(root).catch(() => root)
	const dirs: string[] = []
	for (const dir of new Set(path.split(':'))) {
		if (!isAbsolute(dir)) continue
		const way = relative(base, await realpath(dir).catch(() => dir))
		// A program that the project brings is no tool of the machine.
		if (way.startsWith('..') || isAbsolute(way)) dirs.push(dir)
	}
	return async (name) => {
		for (const dir of dirs) {
			const there = await access(join(dir, name), constants.X_OK).then(
				() => true,
				() => false,
			)
			if (there) return true
		}
		return false
	}
}
