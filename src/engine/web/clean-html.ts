// HTML reduced to what a reader would see, before it becomes Markdown: no scripts, no menus, nothing hidden, bounded depth and size.
import { Parser } from 'htmlparser2'

export interface CleanPage {
	html: string
	title: string
	/** Text was left out because of the caps. */
	cut: boolean
}

/** Left out with everything in them. */
const dropped = new Set(
	'script style noscript template iframe frame frameset object embed applet svg math canvas audio video map nav footer form button select textarea input datalist dialog menu head'.split(
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

const hiddenStyle =
	/(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$)|font-size\s*:\s*0(?:px|em|rem|%|pt)?\s*(?:;|$)|(?:left|top|text-indent)\s*:\s*-\d{3,})/i

const escapeHtml = (text: string): string =>
	text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/**
 * One pass. What a page hides from a reader (hidden, display:none, comments) is where instructions to a model are put: it is
 * left out. Elements deeper than `depth` lose their tags, text beyond `size` characters is cut.
 */
export const cleanHtml = (source: string, base: string, limits = { depth: 120, size: 1_500_000 }): CleanPage => {
	const out: string[] = []
	let size = 0
	let cut = false
	let title = ''
	let inTitle = false
	/** Each open element: its name, what closes it, and whether it hides. */
	const open: { name: string; close: string; drops: boolean; main: number }[] = []
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
				if (name === 'body' || name === 'html') return void open.push({ name, close: '', drops: false, main: -1 })
				if (empty.has(name)) {
					if (dropping > 0) return
					if (name === 'br' || name === 'hr') put(`<${name}>`)
					else if (name === 'img' && attributes.alt?.trim())
						put(escapeHtml(` [image: ${attributes.alt.trim().slice(0, 200)}] `))
					return
				}
				const drops = dropped.has(name) || hides(attributes)
				if (drops) dropping++
				let close = ''
				let main = -1
				if (dropping === 0 && open.length < limits.depth) {
					const tag = kept.has(name) ? name : blocks.has(name) ? 'div' : ''
					if (name === 'main' || name === 'article' || attributes.role === 'main') main = out.length
					if (tag && put(`<${tag}${kind(tag, attributes, base)}>`)) close = `</${tag}>`
				}
				open.push({ name, close, drops, main })
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

const hides = (attributes: Record<string, string>): boolean =>
	'hidden' in attributes || attributes['aria-hidden'] === 'true' || hiddenStyle.test(attributes.style ?? '')

/** The attributes that Markdown has a use for. */
const kind = (tag: string, attributes: Record<string, string>, base: string): string => {
	if (tag === 'a') {
		const href = link(attributes.href, base)
		return href ? ` href="${escapeHtml(href)}"` : ''
	}
	if (tag === 'code' || tag === 'pre') {
		const language = /(?:^|\s)(?:language|lang|highlight-source)-([\w+#-]{1,20})/.exec(attributes.class ?? '')?.[1]
		return language ? ` class="language-${language}"` : ''
	}
	if (tag === 'ol' && /^\d{1,6}$/.test(attributes.start ?? '')) return ` start="${attributes.start}"`
	return ''
}

const link = (href: string | undefined, base: string): string | null => {
	if (!href || href.startsWith('#') || href.length > 1_000 || !URL.canParse(href, base)) return null
	const url = new URL(href, base)
	return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null
}
