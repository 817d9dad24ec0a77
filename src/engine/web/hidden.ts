// Whether a page shows an element to a reader: by its attributes and its own style. Used where HTML is cleaned.

/** A style's declarations as a browser reads them: comments and escapes resolved, the last one of a name counts. */
const declarations = (style: string): Map<string, string> => {
	const text = style
		.slice(0, 10_000)
		.replace(/\/\*[\s\S]*?(?:\*\/|$)/g, '')
		.replace(/\\([0-9a-f]{1,6})\s?/gi, (_, code: string) => {
			const point = Number.parseInt(code, 16)
			return point > 0 && point < 0x110000 ? String.fromCodePoint(point) : ''
		})
		.replaceAll('\\', '')
		.toLowerCase()
	const found = new Map<string, string>()
	const important = new Set<string>()
	for (const part of text.split(';')) {
		const colon = part.indexOf(':')
		if (colon < 1) continue
		const name = part.slice(0, colon).trim()
		const value = part.slice(colon + 1).replace(/!\s*important\s*$/, '')
		const strong = value.length < part.length - colon - 1
		if (important.has(name) && !strong) continue
		if (strong) important.add(name)
		found.set(name, value.trim())
	}
	return found
}

/** The first number of a value in pixels, roughly; null where there is none. `percent`: what one per cent is taken for. */
const amount = (value: string | undefined, percent = 8): number | null => {
	const [, number, unit = ''] = /^(-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)\s*([a-z%]*)/.exec(value ?? '') ?? []
	if (number === undefined) return null
	const relative = /^(?:r?em|ch|ex|v[wh]|vmin|vmax|ic|lh|cm|in|pc)$/.test(unit)
	return Number(number) * (unit === '%' ? percent : relative ? 12 : 1)
}

const below = (value: string | undefined, limit: number, percent?: number): boolean => {
	const size = amount(value, percent)
	return size !== null && size < limit
}

/** Colours that show nothing: no words for "transparent", and what has no opacity. */
const transparent =
	/^(?:transparent|#[0-9a-f]{3}0|#[0-9a-f]{6}0[0-9a-f]|(?:rgb|hsl)a?\([^)]*[,/]\s*(?:0?\.0\d*|0+(?:\.0*)?%?)\s*\))$/

const white = (color: string | undefined): string =>
	(color ?? '')
		.replace(/^(?:white|#fff|rgba?\(\s*255\s*,?\s*255\s*,?\s*255\s*(?:[,/]\s*(?:1|100%)\s*)?\))$/, '#ffffff')
		.replace(/^black$/, '#000000')
		.replace(/^#([0-9a-f])([0-9a-f])([0-9a-f])$/, '#$1$1$2$2$3$3')

const hiddenBy = (style: string): boolean => {
	const of = declarations(style)
	const is = (name: string, value: RegExp): boolean => value.test(of.get(name) ?? '')
	if (is('display', /^none\b/) || is('visibility', /^(?:hidden|collapse)$/) || is('content-visibility', /^hidden$/))
		return true
	const opacity = amount(of.get('opacity')?.replace(/%$/, ''))
	if (opacity !== null && opacity < (of.get('opacity')!.endsWith('%') ? 5 : 0.05)) return true
	if (is('filter', /\bopacity\(\s*(?:0?\.0\d*|0+(?:\.0*)?%?)\s*\)/)) return true
	const font = /(?:^|\s)((?:\d*\.)?\d+(?:[a-z]+|%)|0)(?=[\s/]|$)/.exec(of.get('font') ?? '')?.[1]
	if (below(of.get('font-size') ?? font, 2, 0.16)) return true
	const color = white(of.get('color'))
	if (transparent.test(color) || is('-webkit-text-fill-color', transparent)) return true
	const ground = white(of.get('background-color') ?? of.get('background'))
	if (color !== '' && color === ground) return true
	const clips = ['overflow', 'overflow-x', 'overflow-y'].some((name) => is(name, /\b(?:hidden|clip)\b/))
	if (clips && ['height', 'max-height', 'width', 'max-width'].some((name) => below(of.get(name), 2))) return true
	if (is('clip', /^rect\(\s*(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?\s*\)/))
		return true
	if (
		is(
			'clip-path',
			/^(?:inset\(\s*(?:[5-9]\d|100)%|circle\(\s*0|polygon\(\s*0(?:px)?\s+0(?:px)?(?:\s*,\s*0(?:px)?\s+0(?:px)?)+\s*\))/,
		)
	)
		return true
	if (is('transform', /\bscale[xy]?\(\s*0(?:\.0*)?\s*[,)]/) || is('scale', /^0(?:\.0*)?(?:\s|$)/)) return true
	const far = /-?\d{4,}(?:px|pt)?|-?\d{3,}(?:r?em|v[wh]|ch|%)/
	if (is('transform', new RegExp(`\\btranslate(?:x|y|3d)?\\([^)]*(?:${far.source})`))) return true
	const away = (names: string[]): boolean => names.some((one) => (amount(of.get(one)) ?? 0) <= -100)
	if (away(['text-indent', 'margin-left', 'margin-top', 'margin'])) return true
	const sides = ['left', 'right', 'top', 'bottom', 'inset']
	return away(sides) || sides.some((side) => (amount(of.get(side)) ?? 0) >= 5_000)
}

/** Classes (`.name`) and ids (`#name`) that a page's own style sheet hides. */
export type HidingNames = ReadonlySet<string>

const sheetChars = 300_000

/** The text of all `<style>` elements, bounded; one look from left to right. */
const sheets = (html: string): string => {
	const lower = html.toLowerCase()
	let text = ''
	for (let at = lower.indexOf('<style'); at !== -1 && text.length < sheetChars; ) {
		const from = lower.indexOf('>', at)
		const to = from === -1 ? -1 : lower.indexOf('</style', from)
		if (to === -1) break
		text += `${html.slice(from + 1, to)}\n`
		at = lower.indexOf('<style', to)
	}
	return text.slice(0, sheetChars).replace(/\/\*[\s\S]*?(?:\*\/|$)/g, '')
}

/**
 * What rules for one class or id alone hide, outside of conditions (`@media print`). One that some longer selector shows again
 * (`.tab.open`) does not count: what a reader would see of it is not known.
 */
export const hidingNames = (html: string): HidingNames => {
	const css = sheets(html)
	const own = new Map<string, string>()
	const shown = new Set<string>()
	let depth = 0
	let conditional = false
	const brace = /[{}]/g
	for (let at = 0; at < css.length; ) {
		brace.lastIndex = at
		const end = brace.exec(css)?.index
		if (end === undefined) break
		if (css[end] === '}') {
			depth = Math.max(0, depth - 1)
			if (depth === 0) conditional = false
			at = end + 1
			continue
		}
		const prelude = css.slice(at, end).trim().slice(-2_000)
		at = end + 1
		if (prelude.startsWith('@')) {
			depth++
			conditional = true
			continue
		}
		const close = css.indexOf('}', at)
		const body = css.slice(at, close === -1 ? css.length : close)
		at = close === -1 ? css.length : close + 1
		for (const selector of prelude.split(',')) {
			const simple = /^(?:[a-z][\w-]*|\*)?([.#][\w-]+)$/i.exec(selector.trim())?.[1]
			if (simple && !conditional) own.set(simple, `${own.get(simple) ?? ''};${body}`)
			else if (!conditional && !hiddenBy(body)) for (const name of selector.match(/[.#][\w-]+/g) ?? []) shown.add(name)
		}
	}
	return new Set([...own].flatMap(([name, body]) => (!shown.has(name) && hiddenBy(body) ? [name] : [])))
}

const none: HidingNames = new Set()

/** Hidden from a reader, as far as the element's attributes, its own style and the plain rules of the page say so. */
export const hides = (attributes: Record<string, string>, names: HidingNames = none): boolean =>
	'hidden' in attributes ||
	'popover' in attributes ||
	attributes['aria-hidden']?.trim().toLowerCase() === 'true' ||
	(attributes.style !== undefined && hiddenBy(attributes.style)) ||
	(names.size > 0 &&
		(names.has(`#${attributes.id ?? ''}`) ||
			(attributes.class ?? '').split(/\s+/, 100).some((one) => names.has(`.${one}`))))
