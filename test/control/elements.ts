// The elements of the walls, found in the source by its structure: what the negative control takes away, one at a time.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

export interface Element {
	/** File below src/engine, place and text: stable as long as the element is not moved within its list. */
	id: string
	file: string
	/** The tests that fit, fastest first; paths below test/engine or test/control. */
	tests: readonly string[]
	/** Cut from the source, with what stands instead. */
	from: number
	to: number
	instead: string
}

type Cut = { node: ts.Node; from?: number; to?: number; instead?: string }
type Finder = (node: ts.Node, source: ts.SourceFile) => Cut[]

const sandbox = [
	'control/lists',
	'engine/sandbox/choose',
	'engine/sandbox/policy',
	'engine/sandbox/sandbox',
	'engine/sandbox/run',
	'engine/sandbox/planted',
]
const files = ['control/lists', 'engine/files/guard']
const rules = [
	'control/lists',
	'engine/permission/parse-attacks',
	'engine/permission/args-attacks',
	'engine/permission/decide',
	'engine/permission/rules',
	'engine/permission/policy-rules',
	'engine/permission/differential',
]

const isText = (node: ts.Node): boolean => ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)

/** Each text in a list. */
const texts: Finder = (node) =>
	ts.isArrayLiteralExpression(node) ? node.elements.filter(isText).map((one) => ({ node: one })) : []

/** Each number in a list. */
const numbers: Finder = (node) =>
	ts.isArrayLiteralExpression(node) ? node.elements.filter(ts.isNumericLiteral).map((one) => ({ node: one })) : []

/** Each property of an object that is a table. */
const properties =
	(...names: string[]): Finder =>
	(node) =>
		ts.isVariableDeclaration(node) && names.includes(node.name.getText()) && node.initializer
			? tableOf(node.initializer).map((one) => ({ node: one }))
			: []

const tableOf = (node: ts.Expression): ts.Node[] =>
	ts.isObjectLiteralExpression(node)
		? [...node.properties]
		: ts.isArrayLiteralExpression(node)
			? [...node.elements]
			: []

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
		found.push({ node: one, from: one.getStart(), to: list[end]!.getEnd() })
	}
	return found
}

/** A condition that does something: it does nothing. */
const conditions: Finder = (node) =>
	ts.isIfStatement(node) && !node.elseStatement && !ts.isIfStatement(node.parent) ? [{ node, instead: ';' }] : []

/** A statement that adds to the filter, or a rule with a body. */
const calls: Finder = (node) =>
	ts.isExpressionStatement(node) &&
	ts.isCallExpression(node.expression) &&
	/^(?:when|add)$/.test(node.expression.expression.getText())
		? [{ node, instead: ';' }]
		: []

/** A case of a switch falls away: its label is one that never comes. */
const cases: Finder = (node) =>
	ts.isCaseClause(node)
		? [{ node, from: node.expression.getStart(), to: node.expression.getEnd(), instead: `'no such case' as never` }]
		: []

const reading = properties('wrappers', 'runners', 'special', 'moreStarters')

/** What looks at the source. A file that is not here has no element: this list is the whole scope. */
const scope = (root: string): { file: string; tests: readonly string[]; find: Finder[] }[] => [
	{ file: 'sandbox/names.ts', tests: sandbox, find: [texts, properties('envFixed')] },
	{ file: 'sandbox/bubblewrap.ts', tests: sandbox, find: [flags] },
	{ file: 'sandbox/seccomp.ts', tests: sandbox, find: [numbers, calls] },
	{ file: 'sandbox/policy.ts', tests: sandbox, find: [conditions] },
	{ file: 'files/sensitive.ts', tests: files, find: [texts, conditions] },
	// Whatever reads a command: files come and go here.
	...readdirSync(join(root, 'src/engine/permission'))
		.filter((name) => /^shell-.*\.ts$/.test(name))
		.map((name) => ({ file: `permission/${name}`, tests: rules, find: [texts, reading, cases, conditions] })),
	{ file: 'permission/decide-bash.ts', tests: rules, find: [conditions] },
	{ file: 'permission/decide.ts', tests: rules, find: [conditions] },
]

/** All elements of the source below `root`, in their order. */
export const elements = (root: string): Element[] =>
	scope(root).flatMap(({ file, tests, find }) => {
		const text = readFileSync(join(root, 'src/engine', file), 'utf8')
		const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
		const found = new Map<number, Element>()
		const visit = (node: ts.Node) => {
			for (const finder of find)
				for (const cut of finder(node, source)) {
					const [from, to] = [cut.from ?? cut.node.getStart(), cut.to ?? cut.node.getEnd()]
					if (found.has(from)) continue
					const { line } = source.getLineAndCharacterOfPosition(from)
					const what = text.slice(from, to).replace(/\s+/g, ' ').slice(0, 70)
					// An element of a list goes with its comma.
					const comma = cut.instead === undefined ? (/^\s*,/.exec(text.slice(to))?.[0].length ?? 0) : 0
					found.set(from, {
						id: `${file}:${line + 1} ${what}`,
						file,
						tests,
						from,
						to: to + comma,
						instead: cut.instead ?? '',
					})
				}
			ts.forEachChild(node, visit)
		}
		visit(source)
		return [...found.values()]
	})
