// The built-in tools in their fixed order: the order is part of the bytes that a provider caches.
import type { Tool } from '../ports.ts'
import { type BashOptions, createBashTool } from './bash.ts'
import { editFileTool } from './edit-file.ts'
import { globTool } from './glob.ts'
import { grepTool } from './grep.ts'
import { createProcessManager } from './process-manager.ts'
import { readFileTool } from './read-file.ts'
import { rememberTool } from './remember.ts'
import { todoWriteTool } from './todo-write.ts'
import { writeFileTool } from './write-file.ts'

export interface BuiltinSettings extends BashOptions {
	/** Off by default: no measured gain. */
	todo?: boolean
	/** On by default. */
	memory?: boolean
	/** Milliseconds that glob and grep may take; default 10,000. */
	searchDeadlineMs?: number
	/** Where the search worker's code is, for an unusual build. */
	searchWorkerUrl?: URL
}

/** The tools of a session. */
export const builtinTools = (settings: BuiltinSettings = {}): Tool[] => {
	const search = {
		deadlineMs: settings.searchDeadlineMs ?? 10_000,
		...(settings.searchWorkerUrl && { workerUrl: settings.searchWorkerUrl }),
	}
	return [
		readFileTool,
		globTool(search),
		grepTool(search),
		editFileTool,
		writeFileTool,
		createBashTool(settings),
		...(settings.daemons ? [createProcessManager(settings.daemons)] : []),
		...(settings.memory === false ? [] : [rememberTool]),
		...(settings.todo ? [todoWriteTool] : []),
	]
}
