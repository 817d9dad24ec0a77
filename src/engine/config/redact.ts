// Secrets out of every text on its way to the model, the journal or a front end; stable marks that can be turned back.
import { createHmac } from 'node:crypto'
import type { Redactor } from '../ports.ts'
import { secretName, secretPatterns } from './secret-patterns.ts'
import { secretValue } from './secret-values.ts'

const marks = /\[redacted:([a-z0-9-]{1,40}):([0-9a-f]{6,16})\]/g
/** Shorter values would hide ordinary words. */
const shortest = 6
/** From here on it is worth remembering that a text has been redacted. */
const longText = 2000

interface Known {
	kind: string
	value: string
	/** The mark's value: a coded form restores to itself, not to the plain key. */
	mark: string
	/** Base64, which tools break into lines. */
	coded: boolean
}

/**
 * A redactor for one session. A value's mark is `[redacted:KIND:abcd12]`, the same for the same value and seed, so that
 * equal secrets stay recognisable as equal and nothing can be guessed back without the seed.
 */
export function createRedactor(seed: string): Redactor {
	const known: Known[] = []
	const toMark = new Map<string, string>()
	const toValue = new Map<string, string>()

	const markOf = (kind: string, value: string): string => {
		const had = toMark.get(value)
		if (had) return had
		const hash = createHmac('sha256', seed).update(value).digest('hex')
		// Two values with one short hash would restore wrongly: take more of it.
		let mark = ''
		for (const length of [6, 10, 16]) {
			mark = `[redacted:${kind}:${hash.slice(0, length)}]`
			if (!toValue.has(mark)) break
		}
		toMark.set(value, mark)
		toValue.set(mark, value)
		return mark
	}

	/** Runs `change` on the text between marks only: a mark is never redacted again. */
	const between = (text: string, change: (part: string) => string): string => {
		if (!text.includes('[redacted:')) return change(text)
		let out = ''
		let from = 0
		for (const match of text.matchAll(marks)) {
			out += change(text.slice(from, match.index)) + match[0]
			from = match.index + match[0].length
		}
		return out + change(text.slice(from))
	}

	const redactKnown = (text: string): string => {
		let out = text
		for (const { value, mark } of known) if (out.includes(value)) out = out.replaceAll(value, () => mark)
		if (!known.some(({ coded }) => coded) || !wrapped.test(out)) return out
		for (const { kind, value, coded } of known)
			if (coded)
				out = out.replace(
					new RegExp([...value].map((char) => char.replace(/[+/]/, '\\$&')).join('(?:\\r?\\n)?'), 'g'),
					(found) => markOf(kind, found),
				)
		return out
	}

	const redactPatterns = (text: string): string => {
		let out = text
		for (const { kind, anchors, find, check } of secretPatterns) {
			if (!anchors.some((anchor) => out.includes(anchor))) continue
			out = out.replace(find, (whole: string, ...rest: unknown[]) => {
				const secret = rest.find((group, index) => index < rest.length - 2 && typeof group === 'string') as
					| string
					| undefined
				const value = secret ?? whole
				if (value.includes('[redacted:') || (check && !check(value))) return whole
				// The last one: a name before it may be the same word.
				const at = whole.lastIndexOf(value)
				return whole.slice(0, at) + markOf(kind, value) + whole.slice(at + value.length)
			})
		}
		return redactNamed(out)
	}

	/** Long texts that came out of here: the gate, the journal and the audit log ask for the same one in turn. */
	let clean: string[] = []
	const redact = (text: string): string => {
		if (text.length < longText) return between(between(text, redactKnown), redactPatterns)
		if (clean.includes(text)) return text
		const out = between(between(text, redactKnown), redactPatterns)
		clean = [out, ...clean.slice(0, 3)]
		return out
	}

	return {
		redact,
		restore(text) {
			const unknown: string[] = []
			const restored = text.replace(marks, (mark) => {
				const value = toValue.get(mark)
				if (value === undefined) unknown.push(mark)
				return value ?? mark
			})
			return { text: restored, unknown }
		},
		add(name, value) {
			const plain = value.trim()
			if (plain.length < shortest) return
			const kind =
				name
					.toLowerCase()
					.replace(/[^a-z0-9]+/g, '-')
					.replace(/^-+|-+$/g, '')
					.slice(0, 40) || 'key'
			const coded = base64Forms(plain)
			const forms = new Set([plain, ...secretLines(plain), ...urlForms(plain), ...jsonForms(plain), ...coded])
			for (const form of forms) {
				if (known.some((one) => one.value === form)) continue
				known.push({ kind, value: form, mark: markOf(kind, form), coded: coded.includes(form) })
			}
			// A key that holds another goes first, or its rest would stay.
			known.sort((a, b) => b.value.length - a.value.length)
			clean = []
		},
	}

	/** `NAME=value`, `"name": "value"`, `name: value` where the name says it is a secret and the value looks like one. */
	function redactNamed(text: string): string {
		let out = ''
		let from = 0
		secretName.lastIndex = 0
		for (let match = secretName.exec(text); match; match = secretName.exec(text)) {
			const start = match.index + match[0].length
			const value = valueAt(text, start)
			if (!value) continue
			const { at, secret } = value
			if (!secretValue(secret, at > start || !/\s$/.test(match[0]))) continue
			out += text.slice(from, at) + markOf('value', secret)
			from = at + secret.length
			secretName.lastIndex = from
		}
		return from === 0 ? text : out + text.slice(from)
	}
}

const bare = /[^\s"'`,;&|<>()[\]{}\\]{8,512}/y

// Also as JSON in a string has it: \\"value\\".
const quote = /\\{0,3}["'`]/y

/** The value that begins here: the inside of quotes on one line, or an unbroken word. */
function valueAt(text: string, start: number): { at: number; secret: string } | null {
	quote.lastIndex = start
	const open = quote.exec(text)?.[0]
	if (open) {
		const at = start + open.length
		const end = text.indexOf(open, at)
		if (end < 0 || end - at > 512) return null
		const secret = text.slice(at, end)
		return /[\n\r]|\s{2}|\[redacted:/.test(secret) ? null : { at, secret }
	}
	bare.lastIndex = start
	const match = bare.exec(text)
	return match ? { at: start, secret: match[0] } : null
}

/** A line of base64 that goes on in the next one. */
const wrapped = /(?<![\w+/-])[\w+/-]{16,}\r?\n[\w+/-]/

/** Of a value of several lines (a private key, a service account) the lines that are secret by themselves. */
const secretLines = (value: string): string[] =>
	value.includes('\n') ? value.split(/[\r\n]+/).filter((line) => line.length >= 24 && /^[\w+/=-]+$/.test(line)) : []

/** As it stands in an address or a form: by the usual encoders, with escapes in either case. */
const urlForms = (value: string): string[] => {
	const component = encodeURIComponent(value)
	const strict = component.replace(/[!'()*~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
	const all = [
		component,
		strict,
		strict.replaceAll('%7E', '~'),
		strict.replaceAll('%20', '+'),
		component.replaceAll('%2F', '/'),
	]
	return all.flatMap((text) => [text, text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())])
}

/** As it stands in a JSON string: by the usual writers, and as text in a text. */
const jsonForms = (value: string): string[] => {
	const once = JSON.stringify(value).slice(1, -1)
	const ascii = once.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
	return [once, ascii, once.replaceAll('/', '\\/'), JSON.stringify(once).slice(1, -1)]
}

/** How a key may stand in base64 inside a longer text: at the three alignments, without the bytes its neighbours share. */
function base64Forms(value: string): string[] {
	if (value.length < 12) return []
	const bytes = Buffer.from(value)
	return [0, 1, 2].flatMap((shift) => {
		const text = Buffer.concat([Buffer.alloc(shift), bytes])
			.toString('base64')
			.replace(/=+$/, '')
		const head = Math.ceil((shift * 8) / 6)
		const tail = (bytes.length + shift) % 3 === 0 ? text.length : text.length - 1
		const form = text.slice(head, tail)
		return [form, form.replaceAll('+', '-').replaceAll('/', '_')]
	})
}
