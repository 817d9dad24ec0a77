// Rules as written in settings or a flag, parsed once and matched many times. The grammar is in docs/permissions.md.
import { basename, isAbsolute } from 'node:path'
import { isUnexpanded } from '../config/deny-read.ts'
import type { Level, RuleList, RuleText } from '../config/settings.ts'
import type { GlobTest } from '../glob-parts.ts'
import type { Access } from '../types.ts'
import {
	compileGlob,
	compileText,
	couldMatchText,
	escapeGlob,
	globLiteral,
	looseText,
	matchesText,
	matchText,
	type TextPattern,
} from './match.ts'
import { DYNAMIC, type SimpleCommand } from './shell-words.ts'

export type RuleKind = 'tool' | 'bash' | 'path' | 'host' | 'edits' | 'apply'

export interface Rule {
	kind: RuleKind
	/** As written. */
	text: string
	/** The tool's name (may hold `*` for `mcp__…`); for paths `read`, `edit` or a file tool's name. */
	tool: string
	/** null: the whole tool. */
	pattern: string | null
}

/** A parsed rule with its place; `list` decides how widely it is read. */
export interface PlacedRule extends Rule {
	list: RuleList
	level: Level
	file: string
	line: number
	/** For path rules. */
	path: PathPattern | null
	/** For rules on commands: the pattern's forms, in lower case and widened for deny and ask. */
	forms: TextPattern[]
	/** The pattern as a plain text when it has no star. */
	plain: string | null
	/** The rule before it once more, for the place that its path leads to by a link. */
	alias?: true
}

interface PathPattern {
	/** Against the absolute path. */
	exact: GlobTest
	/** What `exact` was made of, to make it anew elsewhere. */
	glob: string
	/** Deny and ask only, else null: also everything below a folder that matches. */
	below: boolean
	/** What each path that matches holds, in lower case when `below`. */
	literal: string
	/** The text that each path that matches begins with, in lower case when `below`. */
	start: string
}

export interface RuleSet {
	deny: PlacedRule[]
	ask: PlacedRule[]
	allow: PlacedRule[]
	/** Whole commands, as written. */
	outside: { text: string; file: string; line: number }[]
}

export const emptyRules = (): RuleSet => ({ deny: [], ask: [], allow: [], outside: [] })

const readTools = new Set(['read', 'read_file', 'grep', 'glob', 'list', 'search'])
const writeTools = new Set(['edit', 'write', 'edit_file', 'write_file'])

/** Tools by name, those of later rooms too: a team's rule about a name that nothing has would hold nobody to anything. */
const toolNames = new Set([
	...readTools,
	...writeTools,
	...['bash', 'host', 'apply', 'edits', 'remember', 'todo_write', 'web_fetch', 'web_search', 'process_manager'],
	...['agent', 'explore', 'skill', 'delegate_expert', 'symbols', 'diagnostics'],
])
/** "list" and "search" stand for reading in a path rule only. */
const knownTool = ({ tool, kind }: Rule): boolean =>
	(toolNames.has(tool) && !(kind === 'tool' && /^(?:list|search)$/.test(tool))) ||
	tool.startsWith('mcp__') ||
	tool.includes('*')

/** What is wrong with a name that no tool has. */
const unknownTool = (tool: string): string => {
	const near = tool.toLowerCase()
	if (near === tool && toolNames.has(tool))
		return `"${tool}" needs a path; write ${tool}(PATH), or read for all reading`
	return `there is no tool "${tool}"${toolNames.has(near) ? `; it is written ${near}` : ''}`
}

/** One rule's text to its parts, or why it is none. */
export function parseRule(source: string): Rule | { error: string } {
	const text = source.trim()
	if (text === 'edits') return { kind: 'edits', text, tool: 'edits', pattern: null }
	const match = /^([A-Za-z_][\w*-]*)(?:\(([\s\S]*)\))?$/.exec(text)
	if (!match) return { error: 'is no rule: write tool or tool(pattern), for example bash(npm test)' }
	const tool = match[1]!
	if (match[2] === undefined) return { kind: 'tool', text, tool, pattern: null }
	const pattern = match[2].trim()
	if (pattern === '') return { error: `has an empty pattern; write ${tool} for the whole tool` }
	if (/[\0\r]/.test(pattern)) return { error: 'holds a control character' }
	if (tool === 'bash') return { kind: 'bash', text, tool, pattern: pattern === '*' ? null : pattern }
	if (tool === 'host') {
		if (!/^(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9])?(?::\d{1,5})?$/i.test(pattern))
			return { error: 'needs a host name such as registry.npmjs.org, *.example.com or example.com:8443' }
		return { kind: 'host', text, tool, pattern: pattern.toLowerCase() }
	}
	// Covers what a staged command declared, never an edit.
	if (tool === 'apply') {
		if (!compileGlob(pattern, false) || /^[/~]|(?:^|\/)\.\.(?:\/|$)/.test(pattern))
			return { error: 'needs a path or glob relative to the root, such as apply(dist/**)' }
		return { kind: 'apply', text, tool, pattern: pattern.replace(/^(?:\.\/)+/, '') }
	}
	if (readTools.has(tool) || writeTools.has(tool)) {
		if (!compileGlob(pattern, false)) return { error: 'has a broken path pattern (an open [ or {, or far too long)' }
		if (/(?:^|\/)\.\.(?:\/|$)/.test(pattern)) return { error: 'may not hold ".."; write the path itself' }
		if (isUnexpanded(pattern))
			return {
				error: 'begins with a variable or another user’s home, which nothing expands here; write the path itself',
			}
		return { kind: 'path', text, tool, pattern }
	}
	const rule: Rule = { kind: 'tool', text, tool, pattern: null }
	return { error: knownTool(rule) ? `takes no pattern; write ${tool} alone` : `names no tool: ${unknownTool(tool)}` }
}

export interface RuleProblem {
	text: string
	/** Skipping the rule would loosen what was written. */
	fatal: boolean
	/** Its form is right and it is kept, but no tool has its name. */
	unknown?: true
}

/**
 * The set of a session: texts of the settings (or of --allow) parsed, with `problems` for those that are none. A broken
 * deny or ask rule must not be skipped silently: the caller stops on `problems` with `fatal`.
 */
export function ruleSet(texts: readonly RuleText[], places: RulePlaces): { rules: RuleSet; problems: RuleProblem[] } {
	const rules = emptyRules()
	const problems: RuleProblem[] = []
	for (const one of texts) {
		const { list, file, line } = one
		if (list === 'outside') {
			rules.outside.push({ text: one.text.trim(), file, line })
			continue
		}
		const rule = parseRule(one.text)
		if ('error' in rule) {
			problems.push({ text: `${file}:${line}: the ${list} rule "${one.text}" ${rule.error}.`, fatal: list !== 'allow' })
			continue
		}
		if (rule.kind === 'edits' && list !== 'allow') {
			problems.push({
				text: `${file}:${line}: "edits" is for allow only; write edit for all changes of files.`,
				fatal: true,
			})
			continue
		}
		if (!knownTool(rule)) {
			const policy = one.level === 'policy'
			problems.push({
				text: policy
					? `${file}:${line}: ${list}: the rule "${one.text}" cannot be enforced: ${unknownTool(rule.tool)}.`
					: `${file}:${line}: the ${list} rule "${one.text}" names no tool: ${unknownTool(rule.tool)}.`,
				fatal: policy,
				...(policy ? {} : { unknown: true }),
			})
			if (policy) continue
		}
		const paths = rule.kind === 'path' ? linkedPatterns(rule.pattern!, list, places) : [null]
		for (const [at, path] of paths.entries())
			rules[list].push({
				...{ ...rule, list, level: one.level, file, line, path, ...compiled(rule, list) },
				...(at > 0 ? { alias: true } : {}),
			})
	}
	return { rules, problems }
}

export interface RulePlaces {
	root: string
	home: string
	/** Where a path leads, links resolved as far as it is there: rules hold for real paths. Without it as written. */
	real?(path: string): string
}

/** A glob's text before its first mark, and a text of it without its escapes. */
const plainStart = (glob: string): string => /^(?:[^\\*?[{]|\\.)*/s.exec(glob)![0]
const unescaped = (text: string): string => text.replace(/\\(.)/gs, '$1')

/** A rule's path and, in deny and ask, where a link in it leads: who names the link means what lies behind. */
function linkedPatterns(source: string, list: RuleList, places: RulePlaces): PathPattern[] {
	const written = writtenPattern(source, list, places)
	const { real } = places
	if (!real || list === 'allow') return [written]
	const { glob } = written
	const fixed = (text: string) => {
		const raw = plainStart(text)
		return raw.length === text.length ? raw : raw.slice(0, raw.lastIndexOf('/'))
	}
	const found = [written]
	// A name at any depth is one in the root as well.
	const bare = !/[/*?[{]|^~/.test(source)
	for (const text of bare ? [glob, glob.replace('/**/', '/')] : [glob]) {
		const part = fixed(text)
		const path = unescaped(part)
		const target = path === '' ? '' : real(path)
		if (target !== path) found.push(pathPattern(escapeGlob(target) + text.slice(part.length), true))
	}
	return found
}

/**
 * "~" is the home folder; a pattern without "/" is a name at any depth of the root, one with "/" (or "./" before it) at the root;
 * a leading double star begins anywhere on the disk in deny and ask, inside the root in allow.
 */
function writtenPattern(source: string, list: RuleList, { root, home }: RulePlaces): PathPattern {
	const wide = list !== 'allow'
	const fixedPart = (path: string) => escapeGlob(path).replace(/\/+$/, '')
	const folder = source.endsWith('/')
	let glob = folder ? source.slice(0, -1) : source
	const atRoot = glob.startsWith('./')
	if (glob === '~' || glob.startsWith('~/')) glob = fixedPart(home) + glob.slice(1)
	else if (!isAbsolute(glob)) {
		const anywhere = glob.startsWith('**/') && wide
		if (!anywhere) glob = `${fixedPart(root)}/${atRoot || glob.includes('/') || glob === '**' ? '' : '**/'}${glob}`
		else glob = `/${glob}`
	}
	// Nothing lies under "a//b" or "a/./b": a rule so written would hold nobody.
	glob = glob.replace(/\/(?:\.?\/)+/g, '/').replace(/(?<=.)\/\.?$/, '')
	if (folder && !wide) glob += '/**'
	return pathPattern(glob, wide)
}

function pathPattern(glob: string, wide: boolean): PathPattern {
	// Cannot be null: parseRule has tried it. A pattern that matches nothing would be a hole in a deny list.
	const exact = compileGlob(glob, wide)
	if (!exact) throw new Error(`path pattern lost: ${glob}`)
	const start = unescaped(plainStart(glob))
	return { exact, glob, below: wide, literal: globLiteral(glob, wide), start: wide ? start.toLowerCase() : start }
}

function compiled({ kind, pattern }: Rule, list: RuleList): Pick<PlacedRule, 'forms' | 'plain'> {
	if (kind !== 'bash' || pattern === null) return { forms: [], plain: null }
	const plain = /(?<!\\)(?:\\\\)*\*/.test(pattern) ? null : pattern.replace(/\\([*\\])/g, '$1')
	if (list === 'allow') return { forms: forms(pattern).map((form) => compileText(form)), plain }
	// A single word means the command with any arguments: a deny rule is read widely.
	const wide = /\s|\*/.test(pattern) ? forms(pattern) : [pattern, `${pattern} *`]
	return { forms: wide.map((form) => compileText(form, true)), plain }
}

/** Whether a path rule covers an absolute real path. */
export function pathMatches(rule: PlacedRule, path: string, access: Access): boolean {
	if (rule.kind !== 'path' || !rule.path) return false
	// What may not be read may not be changed either: a change shows what was there.
	const reads = readTools.has(rule.tool)
	if (rule.list === 'allow' ? reads !== (access === 'read') : !reads && access === 'read') return false
	if (!(rule.path.below ? path.toLowerCase() : path).includes(rule.path.literal)) return false
	if (rule.path.exact.test(path)) return true
	if (!rule.path.below) return false
	for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1))
		if (rule.path.exact.test(path.slice(0, at))) return true
	return false
}

/** Whether all that a path rule means lies below a folder: who takes the folder away takes that along. */
export const liesBelow = ({ path }: PlacedRule, folder: string): boolean =>
	path?.start.startsWith(`${path.below ? folder.toLowerCase() : folder}/`) ?? false

/** Where reading is denied, as data that a search worker can take. */
export const deniedReads = (rules: RuleSet): { glob: string; below: boolean }[] =>
	rules.deny.flatMap(({ kind, path, tool }) =>
		kind === 'path' && path && readTools.has(tool) ? [{ glob: path.glob, below: path.below }] : [],
	)

/** Whether an allow rule covers one line of a declaration ("change, create dist/**"): the same glob, or a folder that holds it. */
export function applyCovers(rule: Rule, line: string): boolean {
	if (rule.kind !== 'apply' || rule.pattern === null) return false
	const glob = line.replace(/^(?:(?:change|create|delete)(?:, )?)+ /, '')
	if (rule.pattern === glob || rule.pattern === '**') return true
	const folder = /^([^*?[\]{}\\]+\/)\*\*$/.exec(rule.pattern)?.[1]
	return folder !== undefined && glob.startsWith(folder)
}

/** `host(x)`: the name itself, `*.x` its sub-domains, with a port only that port. */
export function hostMatches(rule: Rule, host: string, port: number): boolean {
	if (rule.kind !== 'host' || rule.pattern === null) return rule.kind === 'tool' && rule.tool === 'host'
	const [name = '', only] = rule.pattern.split(':')
	if (only !== undefined && Number(only) !== port) return false
	const asked = host.toLowerCase().replace(/\.$/, '')
	return name.startsWith('*.') ? asked.endsWith(name.slice(1)) && asked.length > name.length - 1 : asked === name
}

/** Whole-tool rules; `mcp__server__*` and the like. The groups read and edit stand for all file tools of their kind. */
export function toolMatches(rule: Rule, tool: string, access: Access): boolean {
	if (rule.pattern !== null || rule.kind === 'edits') return false
	if (rule.tool === tool) return true
	if (rule.tool === 'read' && access === 'read') return true
	if ((rule.tool === 'edit' || rule.tool === 'write') && access === 'write') return true
	return rule.tool.includes('*') && rule.tool.length > 1 && matchText(rule.tool, tool)
}

/** `x:*` and `x *` mean x alone or with anything after it. */
const forms = (pattern: string): string[] => {
	const prefix = /^([\s\S]*[^\\\s*])(?::\*| \*)$/.exec(pattern)?.[1]
	return prefix === undefined ? [pattern] : [prefix, `${prefix} *`]
}

/** An allow rule against one command as it is written: no prefix, wrapper or quoting is looked through. */
export const allowMatches = (rule: PlacedRule, { text, prefixed }: SimpleCommand): boolean =>
	!prefixed &&
	rule.forms.some((form) => (form.first === null || text.startsWith(form.first)) && matchesText(form, text))

/** One way to spell a command, in lower case. */
interface Spelling {
	command: SimpleCommand
	text: string
	/** Ready for `couldMatchText`, when parts of it are known only at the run. */
	loose: string | null
}

/** Commands made ready for many rules: each spelling once, by its first word. */
export interface Spelled {
	all: Spelling[]
	byFirst: ReadonlyMap<string, Spelling[]>
	/** All texts in one, to see that a piece of a pattern occurs in none. */
	joined: string
	dynamic: Spelling[]
}

export function spell(commands: readonly SimpleCommand[]): Spelled {
	const all = new Map<string, Spelling>()
	for (const command of commands) {
		if (command.words.length === 0) continue
		for (const spelling of spellings(command)) {
			const text = spelling.toLowerCase()
			if (!all.has(text)) all.set(text, { command, text, loose: text.includes(DYNAMIC) ? looseText(text) : null })
		}
	}
	const byFirst = new Map<string, Spelling[]>()
	for (const one of all.values()) {
		const space = one.text.indexOf(' ')
		const first = space < 0 ? one.text : one.text.slice(0, space)
		const list = byFirst.get(first)
		if (list) list.push(one)
		else byFirst.set(first, [one])
	}
	const list = [...all.values()]
	return { all: list, byFirst, joined: [...all.keys()].join('\n'), dynamic: list.filter((one) => one.loose !== null) }
}

/** The command that a deny or ask rule means for certain. */
export function denyMatches(rule: PlacedRule, spelled: Spelled): SimpleCommand | null {
	for (const form of rule.forms) {
		if (form.first === null && !spelled.joined.includes(form.longest)) continue
		for (const one of form.first === null ? spelled.all : (spelled.byFirst.get(form.first) ?? []))
			if (matchesText(form, one.text)) return one.command
	}
	return null
}

/** Whether a deny or ask rule could mean a command whose parts are known only at the run. */
export const denyCouldMatch = (rule: PlacedRule, { dynamic }: Spelled): boolean =>
	rule.forms.some((form) => dynamic.some((one) => couldMatchText(form, one.loose!)))

/** Options before the sub-command that take a value. */
const valued: Record<string, RegExp> = {
	git: /^(?:-C|-c|--git-dir|--work-tree|--namespace|--exec-path|--config-env)$/,
	npm: /^(?:--prefix|-C|-w|--workspace|--registry)$/,
	pnpm: /^(?:-C|--dir|--filter|-F)$/,
	yarn: /^(?:--cwd)$/,
	docker: /^(?:-H|--host|--context|-c|--config|-l|--log-level)$/,
	podman: /^(?:--url|--connection|-c|--log-level)$/,
	kubectl: /^(?:-n|--namespace|--context|--cluster|--kubeconfig|--user|-s|--server)$/,
	helm: /^(?:-n|--namespace|--kube-context|--kubeconfig)$/,
	aws: /^(?:--profile|--region|--output|--endpoint-url)$/,
	gcloud: /^(?:--project|--account|--configuration)$/,
	gh: /^(?:-R|--repo)$/,
	cargo: /^(?:--config|-Z|-C|--color)$/,
	terraform: /^(?:-chdir)$/,
	make: /^(?:-C|-f|--directory|--file)$/,
}

/** The ways a command may be spelled for a deny rule: as it is, by its base name, and with global options left out. */
function spellings({ words, text }: SimpleCommand): Set<string> {
	const found = new Set([words.join(' '), text])
	const name = basename(words[0]!.replace(/\.exe$/i, ''))
	found.add([name, ...words.slice(1)].join(' '))
	const takes = valued[name.toLowerCase()]
	if (takes || /^-|^\+/.test(words[1] ?? '')) {
		let at = 1
		while (at < words.length && /^[-+]./.test(words[at]!)) at += takes?.test(words[at]!) ? 2 : 1
		if (at > 1) found.add([name, ...words.slice(at)].join(' '))
	}
	return found
}

/** How a rule is named in messages. */
export const ruleName = (rule: { list?: RuleList; text: string; file: string; line: number }): string =>
	`"${rule.text}" (${rule.file}${rule.line > 0 ? `:${rule.line}` : ''})`
