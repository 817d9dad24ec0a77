// A temporary root and home with a session's tool context, for tests of file tools.
import { promises as fs } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ToolError } from '../../../src/engine/errors.ts'
import { createFiles, type FilesOptions } from '../../../src/engine/files/guard.ts'
import type { Executor, RunResult, RunSpec, Tool, ToolContext, ToolResult } from '../../../src/engine/ports.ts'
import type { BashOptions } from '../../../src/engine/tools/bash.ts'
import { builtinTools } from '../../../src/engine/tools/builtin.ts'
import { parseInput } from '../../../src/engine/tools/input.ts'
import type { Effect } from '../../../src/engine/types.ts'

export const ended = (over: Partial<RunResult> = {}): RunResult => ({
	code: 0,
	signal: null,
	timedOut: false,
	cancelled: false,
	output: '',
	stderr: '',
	bytes: 0,
	survivors: 0,
	durationMs: 1,
	...over,
})

/** An executor that answers from a function and keeps what it was asked. */
export const fakeExecutor = (
	answer: (spec: RunSpec, call: number) => Partial<RunResult>,
): Executor & { specs: RunSpec[] } => {
	const specs: RunSpec[] = []
	return {
		kind: 'host',
		specs,
		run: async (spec) => {
			specs.push(spec)
			return ended(answer(spec, specs.length))
		},
		close: async () => {},
	}
}

export interface Scene {
	root: string
	home: string
	outside: string
	ctx: ToolContext
	progress: string[]
	effects: Effect[]
	put(path: string, content: string | Uint8Array, mode?: number): Promise<string>
	bytes(path: string): Promise<Buffer>
	text(path: string): Promise<string>
	/** Plan and run, as the gate does with a yes. */
	call(name: string, input: Record<string, unknown>, accepted?: number[]): Promise<ToolResult>
	/** The text of the ToolError that a call ends with; fails when it succeeds. */
	fails(name: string, input: Record<string, unknown>): Promise<string>
	tool(name: string): Tool
	close(): Promise<void>
}

export interface SceneOptions extends Partial<FilesOptions> {
	executor?: Executor
	allow?: boolean
	deadlineMs?: number
	marks?: Record<string, string>
	/** What settings switch on. */
	bash?: BashOptions
	deniedReads?: ToolContext['deniedReads']
}

export const scene = async (options: SceneOptions = {}): Promise<Scene> => {
	const top = await fs.realpath(await fs.mkdtemp(join(tmpdir(), 'garuda-files-')))
	const [root, home, outside] = [join(top, 'root'), join(top, 'home'), join(top, 'outside')]
	for (const folder of [root, home, outside]) await fs.mkdir(folder)
	const {
		executor = fakeExecutor(() => ({})),
		allow = true,
		deadlineMs = 10_000,
		marks = {},
		bash = {},
		deniedReads = [],
		...rest
	} = options
	const files = await createFiles({ root, home, ...rest })
	const progress: string[] = []
	const effects: Effect[] = []
	const ctx: ToolContext = {
		callId: 'c1',
		root: rest.root ?? root,
		home: rest.home ?? home,
		mode: 'build',
		deniedReads,
		signal: new AbortController().signal,
		files,
		executor,
		state: { seen: new Map(), cwd: root, todo: [] },
		limits: {
			resultChars: 30_000,
			readLines: 2000,
			readBytes: 256 * 1024,
			bashTimeoutMs: 120_000,
			bashMaxTimeoutMs: 600_000,
		},
		progress: (text) => progress.push(text),
		request: async (effect) => {
			effects.push(effect)
			return { allowed: allow, reason: allow ? '' : 'the user said no' }
		},
		redactor: {
			redact: (text) => Object.entries(marks).reduce((all, [mark, value]) => all.replaceAll(value, () => mark), text),
			restore: (text) => {
				const unknown: string[] = []
				const restored = text.replace(/\[redacted:[a-z]+:[0-9a-f]+\]/g, (mark) => {
					if (marks[mark] === undefined) unknown.push(mark)
					return marks[mark] ?? mark
				})
				return { text: restored, unknown }
			},
			add: () => {},
		},
	}
	const tools = builtinTools({ todo: true, searchDeadlineMs: deadlineMs, ...bash })
	const tool = (name: string): Tool => tools.find((one) => one.name === name)!
	const call = async (name: string, input: Record<string, unknown>, accepted?: number[]): Promise<ToolResult> => {
		const parsed = await parseInput(tool(name), input)
		if ('error' in parsed) throw new Error(parsed.error)
		return tool(name).run(await tool(name).plan(parsed.value, ctx), ctx, accepted)
	}
	const at = (path: string): string => (path.startsWith('/') ? path : join(root, path))
	return {
		root,
		home,
		outside,
		ctx,
		progress,
		effects,
		put: async (path, content, mode) => {
			await fs.mkdir(dirname(at(path)), { recursive: true })
			await fs.writeFile(at(path), content)
			if (mode !== undefined) await fs.chmod(at(path), mode)
			return at(path)
		},
		bytes: (path) => fs.readFile(at(path)),
		text: (path) => fs.readFile(at(path), 'utf8'),
		call,
		fails: async (name, input) => {
			try {
				const result = await call(name, input)
				throw new Error(`expected a refusal, got: ${result.text.slice(0, 300)}`)
			} catch (error) {
				if (error instanceof ToolError) return error.message
				throw error
			}
		},
		tool,
		close: async () => {
			await fs.chmod(top, 0o700)
			await fs.rm(top, { recursive: true, force: true })
		},
	}
}
