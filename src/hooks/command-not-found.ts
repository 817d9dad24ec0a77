// An unknown verb: the nearest one is named, nothing is run. oclif's hook `command_not_found`.
import type { Hook } from '@oclif/core/hooks'
import { nearest } from '../base.ts'

const hook: Hook.CommandNotFound = async ({ id, config }) => {
	const typed = id.split(':')
	const names = config.commandIDs.filter((name) => !config.findCommand(name)?.hidden)
	const best = nearest(id, names) ?? nearest(typed[0]!, [...new Set(names.map((name) => name.split(':')[0]!))])
	const shown = typed.join(' ').replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd')
	const hint = best
		? `Did you mean "${config.bin} ${best.replaceAll(':', ' ')}"?`
		: `A task is given with -p: ${config.bin} -p "…".`
	process.exitCode = 2
	await new Promise<void>((done) => {
		process.stderr.once('error', () => done())
		process.stderr.write(
			`${config.bin}: there is no verb "${shown.slice(0, 80)}". ${hint}\nAll verbs: ${config.bin} --help\n`,
			() => done(),
		)
	})
}

export default hook
