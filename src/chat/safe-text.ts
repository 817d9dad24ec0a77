// Model and tool text on its way to a terminal or a pipe: escape sequences out, hidden characters shown. Used by every text output.
import { visible } from '../engine/index.ts'

/** A filter with memory: what is cut across two chunks is recognised as if it came in one. */
export interface TextFilter {
	/** The safe part of what came so far; never holds back more than one character. */
	push(chunk: string): string
	/** What was held back, at the end of a message. The filter is as new after it. */
	end(): string
}

// ESC, the 8-bit introducers (DCS SOS CSI OSC PM APC, ST) and the carriage return: everything the machine below must see.
const special = /[\u001b\u0090\u0098\u009b-\u009f\r]/g
const joiners = /(\u200c|\u200d|\ufe0e|\ufe0f)/
const emoji = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)$/u
const keycap = /[0-9#*]$/
// Scripts in which the joiners are spelling, not trickery.
const joining =
	/[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*$/u

type State = 'text' | 'escape' | 'csi' | 'string' | 'string-escape'

/**
 * Escape sequences of any form are removed whole, across chunks too; an unfinished OSC ends at the line's end, so it can
 * hide no more than that. CRLF becomes LF; a lone CR and every other hidden character is written out, except joiners and
 * variation selectors where emoji and joining scripts need them.
 */
export function createTextFilter(): TextFilter {
	let state: State = 'text'
	let held = ''
	/** The last text given out: joiners are judged by what stands before them. */
	let before = ''

	const show = (text: string): string => {
		if (text === '') return ''
		let out: string
		if (joiners.test(text)) {
			out = ''
			for (const part of text.split(joiners)) {
				if (part === '') continue
				const left = out === '' ? before : out
				out += part.length === 1 && joiners.test(part) && belongs(part, left) ? part : visible(part)
			}
		} else out = visible(text)
		before = out.slice(-8)
		return out
	}

	return {
		push(chunk) {
			let text = held + chunk
			held = ''
			const last = text.charCodeAt(text.length - 1)
			if (last >= 0xd800 && last < 0xdc00) {
				held = text.slice(-1)
				text = text.slice(0, -1)
			}
			let out = ''
			let i = 0
			while (i < text.length) {
				if (state === 'text') {
					special.lastIndex = i
					const at = special.exec(text)?.index ?? text.length
					out += show(text.slice(i, at))
					i = at
					if (i === text.length) break
					const char = text[i]!
					if (char === '\r') {
						// A run of CRs before LF is one line end; whether LF comes may only be known with the next chunk.
						let next = i + 1
						while (text[next] === '\r') next++
						if (next === text.length) {
							held = `\r${held}`
							return out
						}
						if (text[next] !== '\n') out += show('\r')
						i = next
						continue
					}
					i++
					state = char === '\u001b' ? 'escape' : char === '\u009b' ? 'csi' : char === '\u009c' ? 'text' : 'string'
					continue
				}
				const char = text[i]!
				const code = text.charCodeAt(i)
				if (state === 'escape') {
					if (char === '[') state = 'csi'
					else if (']PX^_'.includes(char)) state = 'string'
					else if (code >= 0x20 && code <= 0x2f) state = 'escape'
					else if (code >= 0x30 && code <= 0x7e) state = 'text'
					else {
						state = 'text'
						continue
					}
				} else if (state === 'csi') {
					if (code >= 0x40 && code <= 0x7e) state = 'text'
					else if (code < 0x20 || code > 0x3f) {
						state = 'text'
						continue
					}
				} else if (state === 'string') {
					if (char === '\u0007' || char === '\u009c') state = 'text'
					else if (char === '\u001b') state = 'string-escape'
					else if (char === '\n') {
						state = 'text'
						continue
					}
				} else {
					// ESC \ ends the string; any other ESC ends it too and begins a sequence of its own.
					state = char === '\\' ? 'text' : 'escape'
					if (char !== '\\') continue
				}
				i++
			}
			return out
		},
		end() {
			const rest = held
			state = 'text'
			held = ''
			const out = show(rest)
			before = ''
			return out
		},
	}
}

const belongs = (joiner: string, left: string): boolean => {
	if (joiner === '\ufe0e' || joiner === '\ufe0f')
		return (emoji.test(left) && !left.endsWith('\ufe0f')) || keycap.test(left)
	return (joiner === '\u200d' && emoji.test(left)) || joining.test(left)
}

/** A whole text through the filter. */
export const safeText = (text: string): string => {
	const filter = createTextFilter()
	return filter.push(text) + filter.end()
}
