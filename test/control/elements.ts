// The elements of the walls, found in the source by its structure: what the negative control takes away, one at a time.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { alternatives } from './alternatives.ts'

export interface Element {
	/** File below src/engine, the declaration that holds it, its text, and which of several: it stays when lines move. */
	id: string
	file: string
	line: number
	/** The tests that fit; paths below test. */
	tests: readonly string[]
	/** Cut from the source, with what stands instead. */
	from: number
	to: number
	instead: string
}

export interface Cut {
	from: number
	to: number
	instead?: string
	/** What the id says, where the text cut away says too little. */
	say?: string
}
type Finder = (node: ts.Node) => Cut[]

const sandbox = [
	'engine/sandbox/policy-parts',
	'engine/sandbox/masks',
	'engine/sandbox/policy',
	'engine/sandbox/planted',
]
const rules = [
	'engine/permission/inner-words',
	'engine/permission/inner-tools',
	'engine/permission/words',
	'engine/permission/match',
	'engine/permission/rule-words',
	'engine/permission/paths',
	'engine/permission/effects',
	'engine/permission/parse-attacks',
	'engine/permission/starters',
	'engine/permission/args-attacks',
	'engine/permission/decide',
	'engine/permission/policy-rules',
	'engine/permission/rules',
	'engine/permission/linked-rules',
	'engine/permission/odd-texts',
	'engine/permission/options',
	'engine/permission/against-bash',
	'engine/permission/host-rule',
	'engine/tools/invoke',
]
const git = ['engine/sandbox/git-asked', 'engine/sandbox/git', 'engine/sandbox/policy', 'engine/sandbox/planted']
const net = ['engine/net/addresses', 'engine/net/host-names', 'engine/net/checked-dial']

const isText = (node: ts.Node): boolean =>
	(ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) && node.text !== ''
const whole = (node: ts.Node, instead?: string): Cut => ({
	from: node.getStart(),
	to: node.getEnd(),
	...(instead === undefined ? {} : { instead }),
})

/** Each text in a list. */
const texts: Finder = (node) =>
	ts.isArrayLiteralExpression(node) ? node.elements.filter(isText).map((one) => whole(one)) : []

/** The same of some lists only. */
const members =
	(...names: string[]): Finder =>
	(node) =>
		names.includes(holder(node)) ? texts(node) : []

/** Each number in a list. */
const numbers: Finder = (node) =>
	ts.isArrayLiteralExpression(node) ? node.elements.filter(ts.isNumericLiteral).map((one) => whole(one)) : []

/** Each property or row of a table. */
const tables =
	(...names: string[]): Finder =>
	(node) =>
		ts.isVariableDeclaration(node) && names.includes(node.name.getText()) && node.initializer
			? rowsOf(node.initializer).map((one) => whole(one))
			: []

const rowsOf = (node: ts.Expression): ts.Node[] =>
	ts.isObjectLiteralExpression(node)
		? [...node.properties]
		: ts.isArrayLiteralExpression(node)
			? [...node.elements]
			: []

/** Each variable of an environment that a function makes. */
const environment: Finder = (node) =>
	ts.isPropertyAssignment(node) && /^[A-Z][A-Z_]+$/.test(node.name.getText()) ? [whole(node)] : []

/** A flag with its values, in a list or in the arguments of a call. */
const flags: Finder = (node) => {
	const list = ts.isArrayLiteralExpression(node) ? node.elements : ts.isCallExpression(node) ? node.arguments : []
	const found: Cut[] = []
	for (const [index, one] of list.entries()) {
		if (!ts.isStringLiteral(one) || !one.text.startsWith('--')) continue
		let end = index
		while (
			list[end + 1] &&
			!(ts.isStringLiteral(list[end + 1]!) && (list[end + 1] as ts.StringLiteral).text.startsWith('--')) &&
			!ts.isSpreadElement(list[end + 1]!)
		)
			end++
		found.push({ from: one.getStart(), to: list[end]!.getEnd() })
	}
	return found
}

/** Each option that a reader of a command asks for: `values(args, '-c', '--command')`. */
const options: Finder = (node) =>
	ts.isCallExpression(node) && /^(?:values|option|holding|has)$/.test(node.expression.getText())
		? node.arguments
				.filter((one) => isText(one))
				.map((one) => ({ ...whole(one, "'\\u0000'"), say: `${one.getText()} of ${around(node)}` }))
		: []

/** Each word of a text that lists options: `{ valued: '-u -g' }`. */
const listed: Finder = (node) =>
	ts.isPropertyAssignment(node) && node.name.getText() === 'valued' && ts.isStringLiteral(node.initializer)
		? [...node.initializer.text.matchAll(/\S+/g)].map((match) => {
				const from = node.initializer.getStart() + 1 + match.index
				return { from, to: from + match[0].length, instead: '', say: `valued ${match[0]} of ${around(node)}` }
			})
		: []

/** What a thing stands in: the property, case or call's place that names it. */
const around = (node: ts.Node): string => {
	for (let at: ts.Node = node.parent; at; at = at.parent) {
		if (ts.isPropertyAssignment(at) && !/^(?:valued|skip|assigns|argv)$/.test(at.name.getText()))
			return at.name.getText()
		if (ts.isCaseClause(at)) return at.expression.getText()
		if (ts.isConditionalExpression(at) || ts.isIfStatement(at)) {
			const condition = ts.isIfStatement(at) ? at.expression : at.condition
			return short(condition.getText())
		}
		if (ts.isFunctionDeclaration(at) || ts.isVariableStatement(at)) return ''
	}
	return ''
}

/** A condition that never holds: neither what it refuses is refused, nor what it lets pass passes. */
const conditions: Finder = (node) =>
	ts.isIfStatement(node) && !onlyWords(node)
		? [{ ...whole(node.expression, 'false'), say: `if (${short(node.expression.getText())})` }]
		: []

/** Where a value is chosen by a condition: each side is a rule, so the condition never holds. */
const choices: Finder = (node) =>
	ts.isConditionalExpression(node) && !isText(node.whenTrue)
		? [{ ...whole(node.condition, 'false'), say: `${short(node.condition.getText())} ?` }]
		: []

/** Both ways end in an error, and the condition only chooses its words. */
const onlyWords = (node: ts.IfStatement): boolean => {
	const next =
		node.parent && ts.isBlock(node.parent)
			? node.parent.statements[node.parent.statements.indexOf(node) + 1]
			: undefined
	const throws = (one: ts.Statement | undefined): boolean =>
		one !== undefined && (ts.isThrowStatement(one) || (ts.isBlock(one) && throws(one.statements.at(-1))))
	return throws(node.thenStatement) && throws(node.elseStatement ?? next)
}

/** A statement that adds to the filter, or a rule with a body. */
const calls: Finder = (node) =>
	ts.isExpressionStatement(node) &&
	ts.isCallExpression(node.expression) &&
	/^(?:when|add)$/.test(node.expression.expression.getText())
		? [whole(node, ';')]
		: []

/** A case of a switch falls away: its label is one that never comes. */
const cases: Finder = (node) =>
	ts.isCaseClause(node)
		? [{ ...whole(node.expression, `'no such case' as never`), say: `case ${node.expression.getText()}` }]
		: []

/** Each alternative of a pattern that lists names: `/^(?:ssh|gpg)$/`. */
const patterns: Finder = (node) =>
	ts.isRegularExpressionLiteral(node)
		? alternatives(node.text).map(({ from, to, text }) => ({
				from: node.getStart() + from,
				to: node.getStart() + to,
				instead: '',
				say: `|${text}| ${short(node.text)}`,
			}))
		: []

/** Each rule in a text of the profile language: `(deny network*)`. */
const profile: Finder = (node) =>
	ts.isStringLiteral(node)
		? [...node.getText().matchAll(/\((?:allow|deny) .*?\)\\n/g)].map((match) => {
				const from = node.getStart() + match.index
				return { from, to: from + match[0].length, instead: '' }
			})
		: []

/** Each call that makes one. */
const ruleCalls: Finder = (node) =>
	ts.isCallExpression(node) && node.expression.getText() === 'rule' ? [whole(node, "''")] : []

const short = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 70)

const reading = tables('wrappers', 'runners', 'special', 'moreStarters')

interface Place {
	file: string
	tests: readonly string[]
	find: Finder[]
}
/** What looks at the source. A file that is not here has no element: this list is the whole scope. */
const scope = (root: string): Place[] => [
	{
		file: 'sandbox/names.ts',
		tests: ['engine/sandbox/names', 'engine/sandbox/masks'],
		find: [texts, tables('envFixed')],
	},
	{
		file: 'sandbox/bubblewrap.ts',
		tests: ['engine/sandbox/flags', 'engine/sandbox/policy'],
		find: [flags, conditions],
	},
	{
		file: 'sandbox/seccomp.ts',
		tests: ['engine/sandbox/filter'],
		find: [numbers, calls, conditions],
	},
	{ file: 'sandbox/policy.ts', tests: sandbox, find: [texts, conditions] },
	{ file: 'sandbox/environment.ts', tests: sandbox, find: [conditions, patterns] },
	{ file: 'sandbox/placeholders.ts', tests: sandbox, find: [conditions] },
	{ file: 'sandbox/repository.ts', tests: sandbox, find: [texts, conditions, patterns] },
	{ file: 'sandbox/denied.ts', tests: sandbox, find: [conditions] },
	{
		file: 'sandbox/git.ts',
		tests: git,
		find: [tables('fixed'), members('diffing', 'enteringSubmodules'), environment, options, conditions, patterns],
	},
	{ file: 'sandbox/git-config.ts', tests: git, find: [conditions, patterns] },
	{
		file: 'sandbox/network-proxy.ts',
		tests: ['engine/sandbox/proxy-edges', 'engine/sandbox/network-proxy', 'engine/sandbox/network'],
		find: [conditions],
	},
	{
		file: 'sandbox/client-hello.ts',
		tests: ['engine/sandbox/proxy-edges', 'engine/sandbox/network-proxy'],
		find: [conditions],
	},
	{ file: 'net/addresses.ts', tests: net, find: [tables('special4'), conditions] },
	{ file: 'net/host-names.ts', tests: net, find: [conditions] },
	{ file: 'net/checked-dial.ts', tests: net, find: [conditions] },
	{
		file: 'net/pinned-fetch.ts',
		tests: ['engine/net/pinned-fetch', ...net],
		find: [conditions],
	},
	{
		file: 'files/sensitive.ts',
		tests: ['engine/files/sensitive', 'engine/files/guard'],
		find: [texts, conditions, patterns],
	},
	{
		file: 'files/guard.ts',
		tests: ['engine/files/guard-edges', 'engine/files/guard', 'engine/tools/edit', 'engine/tools/read'],
		find: [conditions],
	},
	// Whatever reads a command: files come and go here.
	...readdirSync(join(root, 'src/engine/permission'))
		.filter((name) => /^shell-.*\.ts$/.test(name))
		.map((name) => ({
			file: `permission/${name}`,
			tests: rules,
			find: [texts, reading, cases, conditions, options, listed, patterns],
		})),
	{ file: 'permission/command-paths.ts', tests: rules, find: [texts, cases, conditions, options, patterns] },
	{ file: 'permission/decide-bash.ts', tests: rules, find: [conditions] },
	{ file: 'permission/decide.ts', tests: rules, find: [conditions, cases, choices, patterns] },
	{ file: 'permission/match.ts', tests: rules, find: [conditions] },
	{ file: 'permission/rules.ts', tests: rules, find: [tables('valued'), conditions, patterns] },
	{
		file: 'permission/trust-file.ts',
		tests: ['engine/permission/trust-file', 'engine/permission/trust'],
		find: [conditions],
	},
	{ file: 'web/target.ts', tests: ['engine/web/target', 'engine/web/fetch'], find: [conditions] },
	{ file: 'sandbox/programs.ts', tests: ['engine/sandbox/programs', 'engine/sandbox/git-asked'], find: [conditions] },
	{
		file: 'sandbox/seatbelt.ts',
		tests: ['engine/sandbox/seatbelt', 'engine/sandbox/choose'],
		find: [texts, profile, ruleCalls, conditions],
	},
]

/** All elements of the source below `root`, in their order. Last among the tests of each is the copy of the lists. */
export const elements = (root: string): Element[] => {
	const times = new Map<string, number>()
	return scope(root).flatMap(({ file, tests, find }) => {
		const text = readFileSync(join(root, 'src/engine', file), 'utf8')
		const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
		const found = new Map<string, Element>()
		const visit = (node: ts.Node) => {
			for (const finder of find)
				for (const { from, to, instead, say } of finder(node)) {
					if (found.has(`${from} ${to}`)) continue
					const what = `${file} ${holder(node)} ${say ?? short(text.slice(from, to))}`
					const count = (times.get(what) ?? 0) + 1
					times.set(what, count)
					// An element of a list goes with its comma, an alternative with its bar.
					const comma = instead === undefined ? (/^\s*,/.exec(text.slice(to))?.[0].length ?? 0) : 0
					found.set(`${from} ${to}`, {
						id: count === 1 ? what : `${what} #${count}`,
						file,
						line: source.getLineAndCharacterOfPosition(from).line + 1,
						tests: [...new Set(tests), 'control/lists'],
						from,
						to: to + comma,
						instead: instead ?? '',
					})
				}
			ts.forEachChild(node, visit)
		}
		visit(source)
		return [...found.values()]
	})
}

/** The declaration at the top of a file, or the method of a class, that holds a node. */
const holder = (node: ts.Node): string => {
	let name = ''
	for (let at: ts.Node = node; at; at = at.parent)
		if (
			(ts.isVariableDeclaration(at) && ts.isSourceFile(at.parent.parent.parent)) ||
			ts.isFunctionDeclaration(at) ||
			ts.isMethodDeclaration(at)
		)
			name = at.name?.getText() ?? name
	return name
}
