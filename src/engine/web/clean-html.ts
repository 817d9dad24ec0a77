// HTML reduced to what a reader would see, before it becomes Markdown: no scripts, no menus, nothing hidden, bounded depth and size.
import { Parser } from 'htmlparser2'
import { type HidingNames, hides, hidingNames } from './hidden.ts'

export interface CleanPage {
	html: string
	title: string
	/** Text was left out because of the caps. */
	cut: boolean
}

/** Left out with everything in them. */
const dropped = new Set(
	'script style noscript noframes noembed template iframe frame frameset object embed applet svg math canvas audio video map nav footer form button select textarea input datalist dialog menu head rp'.split(
		' ',
	),
)
const kept = new Set(
	'p br hr h1 h2 h3 h4 h5 h6 ul ol li dl dt dd blockquote pre code kbd samp em strong b i del s strike a table thead tbody tfoot tr th td caption div section article main sup sub'.split(
		' ',
	),
)
const blocks = new Set(
	'address aside center details fieldset figcaption figure header hgroup legend summary'.split(' '),
)
const empty = new Set([
	'br',
	'hr',
	'img',
	'input',
	'meta',
	'link',
	'base',
	'col',
	'area',
	'source',
	'track',
	'wbr',
	'embed',
])

const escapeHtml = (text: string): string =>
	text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/**
 * One pass. What a page hides from a reader (hidden, display:none, comments) is where instructions to a model are put: it is
 * left out. Elements deeper than `depth` lose their tags, text beyond `size` characters is cut.
 */
export const cleanHtml = (source: string, base: string, limits = { depth: 120, size: 400_000 }): CleanPage => {
	const names = hidingNames(source)
	const out: string[] = []
	let size = 0
	let cut = false
	let title = ''
	let inTitle = false
	/** Each open element: its name, what closes it, and whether it hides. */
	const open: { name: string; close: string; drops: boolean; main: number; language: string }[] = []
	/** Where a block of code begins, to name its language once that is known. */
	let code = -1
	let tables = 0
	let dropping = 0
	let best: [from: number, to: number, length: number] | undefined
	const put = (text: string): boolean => {
		const fits = size + text.length <= limits.size
		if (fits) {
			size += text.length
			out.push(text)
		} else cut = true
		return fits
	}
	const parser = new Parser(
		{
			onopentag(name, attributes) {
				// A frame of text only: the title stands in the head, which is left out.
				if (name === 'title' && open.every((one) => one.name === 'html' || one.name === 'head')) inTitle = true
				if (name === 'body' || name === 'html')
					return void open.push({ name, close: '', drops: false, main: -1, language: '' })
				if (empty.has(name)) {
					if (dropping > 0) return
					if (name === 'br' && code >= 0) put('\n')
					else if (name === 'br' || name === 'hr') put(`<${name}>`)
					else if (name === 'img' && attributes.alt?.trim() && !unseen(attributes, names))
						put(escapeHtml(` [image: ${attributes.alt.trim().slice(0, 200)}] `))
					return
				}
				const drops = dropped.has(name) || hides(attributes, names)
				if (drops) dropping++
				let close = ''
				let main = -1
				if (dropping === 0 && open.length < limits.depth) {
					if (name === 'main' || name === 'article' || attributes.role === 'main') main = out.length
					// Tables are also used to lay a page out: one inside another is no table.
					if (name === 'table') tables++
					const flat = tables > 1 && /^(?:table|thead|tbody|tfoot|tr|t[hd]|caption)$/.test(name)
					const tag = code >= 0 ? '' : flat || blocks.has(name) ? 'div' : kept.has(name) ? name : ''
					if (name === 'pre' && code < 0 && put('<pre><code>')) {
						code = out.length - 1
						close = '</code></pre>'
					} else if (name !== 'pre' && tag && put(`<${tag}${kind(tag, attributes, base)}>`)) close = `</${tag}>`
				}
				const language = languageOf(attributes.class)
				const named = language || open.at(-1)?.language
				if (code >= 0 && named && out[code] === '<pre><code>') out[code] = `<pre><code class="language-${named}">`
				open.push({ name, close, drops, main, language })
			},
			ontext(text) {
				if (inTitle) title = (title + text).slice(0, 300)
				else if (dropping === 0) put(escapeHtml(text))
			},
			onclosetag(name) {
				if (name === 'title') inTitle = false
				if (empty.has(name)) return
				// The parser closes each element it opened, in order.
				const one = open.pop()
				if (!one) return
				if (one.drops) dropping--
				if (one.close === '</code></pre>') code = -1
				if (one.name === 'table' && tables > 0 && !one.drops) tables--
				// Always: the tags must stay balanced where text was cut.
				if (one.close) out.push(one.close)
				if (one.main < 0) return
				const length = out
					.slice(one.main)
					.reduce((sum, part) => sum + (part.startsWith('<') ? 0 : part.trim().length), 0)
				if (!best || length > best[2]) best = [one.main, out.length, length]
			},
		},
		{ decodeEntities: true, lowerCaseTags: true, recognizeSelfClosing: false },
	)
	parser.end(source)
	const page = best && best[2] >= 400 ? out.slice(best[0], best[1]) : out
	return { html: page.join(''), title: title.replace(/\s+/g, ' ').trim(), cut }
}

/** A picture of a point's size is there to count readers, and its words are for nobody. */
const unseen = (attributes: Record<string, string>, names: HidingNames): boolean =>
	hides(attributes, names) || /^[01]$/.test(attributes.width ?? '') || /^[01]$/.test(attributes.height ?? '')

const languageOf = (classes = ''): string =>
	/(?:^|\s)(?:language|lang|highlight-source|brush:)-?\s*([\w+#-]{1,20})/.exec(classes)?.[1] ?? ''

/** The attributes that Markdown has a use for. */
const kind = (tag: string, attributes: Record<string, string>, base: string): string => {
	if (tag === 'a') {
		const href = link(attributes.href, base)
		return href ? ` href="${escapeHtml(href)}"` : ''
	}
	if (tag === 'ol' && /^\d{1,6}$/.test(attributes.start ?? '')) return ` start="${attributes.start}"`
	return ''
}

const link = (href: string | undefined, base: string): string | null => {
	if (!href || href.startsWith('#') || href.length > 1_000 || !URL.canParse(href, base)) return null
	const url = new URL(href, base)
	return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null
}
