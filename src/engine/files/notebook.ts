// A Jupyter notebook as text for the model, and an edit of one cell that leaves every other byte of the file alone.
import { ToolError } from '../errors.ts'
import { asShown, cutHead } from '../text.ts'

/** A place in JSON text: `value` only for strings. */
interface Node {
	start: number
	end: number
	value?: string
	items?: Node[]
	fields?: Map<string, Node>
}

/** Reads JSON and keeps where each value stands. The text must be valid JSON (checked by the caller). */
const scan = (text: string): Node => {
	let at = 0
	const space = (): void => {
		while (/[ \t\r\n]/.test(text[at] ?? '')) at++
	}
	const string = (): Node => {
		const start = at++
		while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
		at++
		return { start, end: at, value: JSON.parse(text.slice(start, at)) }
	}
	const value = (depth: number): Node => {
		if (depth > 100) throw new ToolError('The notebook is nested too deeply.')
		space()
		const start = at
		const char = text[at]
		if (char === '"') return string()
		if (char === '[' || char === '{') {
			at++
			const items: Node[] = []
			const fields = new Map<string, Node>()
			for (;;) {
				space()
				if (text[at] === ']' || text[at] === '}') break
				if (text[at] === ',') {
					at++
					continue
				}
				if (char === '[') {
					items.push(value(depth + 1))
					continue
				}
				const key = string()
				space()
				at++
				fields.set(key.value!, value(depth + 1))
			}
			at++
			return char === '[' ? { start, end: at, items } : { start, end: at, fields }
		}
		while (at < text.length && !/[,\]}\s]/.test(text[at]!)) at++
		return { start, end: at }
	}
	return value(0)
}

const cellNodes = (root: Node): Node[] => {
	const own = root.fields?.get('cells')?.items ?? []
	// nbformat 3 keeps its cells in worksheets.
	const sheets = root.fields?.get('worksheets')?.items ?? []
	return [...own, ...sheets.flatMap((sheet) => sheet.fields?.get('cells')?.items ?? [])]
}

const sourceNode = (cell: Node): Node | undefined => cell.fields?.get('source') ?? cell.fields?.get('input')

const joined = (node: Node | undefined): string =>
	node?.value ?? node?.items?.map((item) => item.value ?? '').join('') ?? ''

const outputMax = 1200

const joinedValue = (value: unknown): string =>
	Array.isArray(value) ? value.join('') : typeof value === 'string' ? value : ''

const bounded = (text: string): string => {
	const shown = asShown(text).replace(/\n$/, '')
	return shown.length > outputMax
		? `${cutHead(shown, outputMax)}\n[… ${(shown.length - outputMax).toLocaleString('en')} more characters of output]`
		: shown
}

const pictureTypes = /^(?:image\/)?(?:png|jpeg|gif|webp)$/

/** One output in words: text short, pictures as `line` says or only as type and size: their base64 as text helps nobody. */
const renderOutput = (
	output: Record<string, unknown>,
	line: (data: string, plain: string) => string | undefined,
): string => {
	if (output.output_type === 'stream') return bounded(joinedValue(output.text))
	if (output.output_type === 'error' || output.output_type === 'pyerr')
		return bounded(
			Array.isArray(output.traceback) && output.traceback.length
				? output.traceback.join('\n')
				: `${output.ename}: ${output.evalue}`,
		)
	// nbformat 3 puts the types into the output itself.
	const data = (output.data ?? output) as Record<string, unknown>
	const parts: string[] = []
	const text = joinedValue(data['text/plain'] ?? data.text)
	if (text) parts.push(bounded(text))
	for (const [type, value] of Object.entries(data)) {
		const content = joinedValue(value)
		const plain = `${type}, ${Math.ceil(content.length / 1024)} kB, not shown`
		if (pictureTypes.test(type)) parts.push(line(content, plain) ?? `[${plain}]`)
		else if (/^image\/|^application\/pdf$|^svg$/.test(type) || (type === 'text/html' && !text)) parts.push(`[${plain}]`)
	}
	return parts.join('\n')
}

/** A picture among a cell's outputs. */
export interface NotebookPicture {
	/** 1-based. */
	cell: number
	/** Base64 without the line breaks that notebooks put into it; not looked at. */
	data: string
	/** Type and size in words, for a picture that is not shown. */
	plain: string
}

/** The pictures of the outputs, in order. */
export const notebookPictures = (json: string): NotebookPicture[] => {
	const found: NotebookPicture[] = []
	renderNotebook(json, (cell, data, plain) => {
		found.push({ cell, data: data.replace(/[\r\n]/g, ''), plain })
		return undefined
	})
	return found
}

/**
 * The notebook as text: each cell with its number, id and type, then its source and short outputs. `line` is asked for what
 * stands in the place of each picture, in order; without an answer it is type and size.
 */
export const renderNotebook = (
	json: string,
	line: (cell: number, data: string, plain: string) => string | undefined = () => undefined,
): string => {
	const book = JSON.parse(json) as Record<string, any>
	const cells: Record<string, any>[] = [
		...(book.cells ?? []),
		...(book.worksheets ?? []).flatMap((sheet: any) => sheet?.cells ?? []),
	]
	const language = book.metadata?.language_info?.name ?? book.metadata?.kernelspec?.language
	const out = [
		`Jupyter notebook (nbformat ${book.nbformat}), ${cells.length} cell${cells.length === 1 ? '' : 's'}${typeof language === 'string' ? `, ${language}` : ''}`,
	]
	cells.forEach((cell, index) => {
		out.push(
			'',
			`--- cell ${index + 1}${typeof cell?.id === 'string' ? ` id=${cell.id}` : ''} ${cell?.cell_type ?? 'unknown'}`,
		)
		out.push(joinedValue(cell?.source ?? cell?.input).replace(/\n$/, ''))
		for (const output of Array.isArray(cell?.outputs) ? cell.outputs : []) {
			const text =
				typeof output === 'object' && output !== null
					? renderOutput(output, (data, plain) => line(index + 1, data, plain))
					: ''
			if (text) out.push('--- output', text)
		}
	})
	return `${out.join('\n')}\n`
}

const occurrences = (text: string, part: string): number => text.split(part).length - 1

/**
 * The notebook's JSON text with `from` replaced in the one cell whose source holds it. Only that cell's source is
 * rewritten, in the form and indentation it has. ToolError when no cell or more than one place holds it.
 */
export const editNotebook = (
	json: string,
	from: string,
	to: string,
	all: boolean,
): { text: string; cells: number[] } => {
	const cells = cellNodes(scan(json))
	const found = cells
		.map((cell, index) => ({ index, node: sourceNode(cell), times: occurrences(joined(sourceNode(cell)), from) }))
		.filter(({ times }) => times > 0)
	const total = found.reduce((sum, { times }) => sum + times, 0)
	if (total === 0)
		throw new ToolError('old_string was not found in the source of any cell of the notebook. Outputs cannot be edited.')
	if (total > 1 && !all)
		throw new ToolError(
			`old_string was found ${total} times, in cell${found.length > 1 ? 's' : ''} ${found.map(({ index }) => index + 1).join(', ')}. Give more lines around it, or set replace_all.`,
		)
	let text = json
	// From the back, so that earlier positions hold.
	for (const { node } of found.reverse()) {
		if (!node) continue
		const source = joined(node).split(from).join(to)
		text = text.slice(0, node.start) + formatSource(json, node, source) + text.slice(node.end)
	}
	return { text, cells: found.map(({ index }) => index + 1).reverse() }
}

/** nbformat's own writing of strings: Unicode as it is unless the file escapes it. */
const quote = (value: string, ascii: boolean): string => {
	const quoted = JSON.stringify(value)
	return ascii
		? quoted.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
		: quoted
}

const formatSource = (json: string, node: Node, source: string): string => {
	const ascii = !/[\u0080-\uffff]/.test(json) && /\\u(?!00[0-7])[0-9a-f]{4}/i.test(json)
	if (node.items === undefined) return quote(source, ascii)
	const lines = source === '' ? [] : source.split(/(?<=\n)/)
	if (lines.length === 0) return '[]'
	const first = node.items[0]
	const before = first ? json.slice(node.start + 1, first.start) : indentBelow(json, node)
	const after = first ? json.slice(node.items.at(-1)!.end, node.end - 1) : before.replace(/[ \t]{1,2}$/, '')
	const second = node.items[1]
	const between = second ? json.slice(first!.end, second.start) : before.includes('\n') ? `,${before}` : ', '
	return `[${before}${lines.map((line) => quote(line, ascii)).join(between)}${after}]`
}

/** Line break and indentation one step below the line that holds the node; '' in JSON on one line. */
const indentBelow = (json: string, node: Node): string => {
	const line = json.slice(json.lastIndexOf('\n', node.start) + 1, node.start)
	return json.includes('\n') ? `\n${/^\s*/.exec(line)![0]} ` : ''
}
