// Words from files, tools and the web on their way to the model: Garuda's own markers in them lose their force.
import { latinLetters } from './look-alikes.ts'
import { stripEscapes, wellFormed } from './text.ts'

/**
 * Tags that mean something in Garuda's prompts, in any spelling a model would still read as one. Only names that
 * ordinary files do not use: what is read must stay as it is, or an edit of it would not match.
 */
const markers =
	/[<＜‹⟨]([\s\u00ad\u200b-\u200f\u2060\ufeff]*[/／]?[\s\u00ad\u200b-\u200f\u2060\ufeff]*)(garuda-|(?:system-reminder|tool_result|web_result|mcp_result)\b)/gi

/** Outside text with Garuda's markers neutralised, terminal escapes and invisible tag characters removed. */
export const clean = (text: string): string =>
	neutralise(
		wellFormed(stripEscapes(text))
			.replace(/[\u{e0000}-\u{e007f}]/gu, '')
			.replace(/[\u0001-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, ''),
	)

export const neutralise = (text: string): string =>
	text
		.replace(markers, '&lt;$1$2')
		.replace(lookAlikes, (whole, between: string, name: string) =>
			marker.test(plainName(name)) ? `&lt;${between}${name}` : whole,
		)

/** The same in look-alikes: another bracket, slash or letter, something invisible between. Not `<=`, `<<` or `<ToolResult`, which code has. */
const lookAlikes = /[<＜‹⟨﹤〈《❮❬≺⧼⟪«]([\s\p{Cf}\p{M}/\\／⁄∕⧸]{0,12})(\p{L}[\p{L}\p{M}\p{Cf}_\-\p{Pc}\p{Pd}]{5,40})/gu

const plainName = (name: string): string =>
	latinLetters(name)
		.replace(/[\p{Cf}\p{M}]/gu, '')
		.replace(/[\p{Pc}\p{Pd}]/gu, '-')

const marker = /^(?:garuda-|(?:system-reminder|tool-result|web-result|mcp-result)(?![a-z]))/

/** Outside text in a tag of Garuda's own: what is inside is data, not instructions. */
export const wrap = (tag: string, attributes: Record<string, string>, text: string): string => {
	const attrs = Object.entries(attributes)
		.map(
			([key, value]) =>
				` ${key}="${value
					.replace(/[\u0000-\u001f\u007f]/g, ' ')
					.replaceAll('&', '&amp;')
					.replaceAll('"', '&quot;')
					.replaceAll('<', '&lt;')}"`,
		)
		.join('')
	return `<${tag}${attrs}>\n${clean(text)}\n</${tag}>`
}
