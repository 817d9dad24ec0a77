// Bytes of a terminal as typed text, pastes and an interrupt. What a paste holds is text, never a key: it can send nothing.

export type Typed =
	| { type: 'text'; text: string }
	| { type: 'paste'; text: string }
	| { type: 'interrupt' }
	| { type: 'suspend' }

const begin = '\u001b[200~'
const finish = '\u001b[201~'
/** What follows the end of a paste sooner than a hand could press a key belongs to the paste. */
const quietMs = 30

/**
 * Splits what a terminal sends. A paste may hold the very sequence that ends a paste (that is how a copied text would
 * press Enter): so what comes in the same read as the end, or at once after it, counts as pasted too. Without bracketed
 * paste, a read with a line end before its last character is taken for a paste.
 */
export class Keys {
	private readonly decoder = new TextDecoder('utf-8')
	private readonly now: () => number
	private pasted: string[] | null = null
	private held = ''
	private escaped = false
	private endedAt = Number.NEGATIVE_INFINITY

	constructor(now: () => number = () => performance.now()) {
		this.now = now
	}

	feed(chunk: Uint8Array | string): Typed[] {
		let text = this.held + (typeof chunk === 'string' ? chunk : this.decoder.decode(chunk, { stream: true }))
		this.held = ''
		// An Escape that went on as a key was the first character of a mark.
		if (this.escaped && text.startsWith(begin.slice(1))) text = `\u001b${text}`
		this.escaped = text === '\u001b'
		const out: Typed[] = []
		const paste = (what: string) => {
			const clean = what.replaceAll(begin, '').replaceAll(finish, '').replace(/\r\n?/g, '\n')
			if (clean !== '') out.push({ type: 'paste', text: clean })
		}
		const soon = this.now() - this.endedAt < quietMs
		if (this.pasted === null && soon && !text.startsWith(begin)) {
			this.endedAt = this.now()
			paste(text)
			return out
		}
		// A mark that is cut by the end of the read; an Escape key alone is not held.
		const tail = /\u001b(?:\[(?:2(?:0[01]?)?)?)?$/.exec(text)?.[0]
		if (tail && (this.pasted !== null || tail !== text || tail.length > 1)) {
			this.held = tail
			text = text.slice(0, -tail.length)
		}
		while (text !== '') {
			if (this.pasted !== null) {
				const at = text.lastIndexOf(finish)
				// A new paste after the last end in this read begins outside of it.
				if (at === -1) {
					this.pasted.push(text)
					return out
				}
				this.pasted.push(text.slice(0, at), text.slice(at + finish.length))
				paste(this.pasted.join(''))
				this.pasted = null
				this.endedAt = this.now()
				return out
			}
			const at = text.indexOf(begin)
			const plain = at === -1 ? text : text.slice(0, at)
			this.typed(plain, out)
			if (at === -1) return out
			this.pasted = []
			text = text.slice(at + begin.length)
		}
		return out
	}

	private typed(text: string, out: Typed[]): void {
		if (text === '') return
		if (text.length > 2 && /[\r\n](?=[\s\S]*[^\r\n])/.test(text) && !text.includes('\u0003')) {
			out.push({ type: 'paste', text: text.replace(/\r\n?/g, '\n') })
			return
		}
		for (const part of text.split(/([\u0003\u001a])/)) {
			if (part === '\u0003') out.push({ type: 'interrupt' })
			else if (part === '\u001a') out.push({ type: 'suspend' })
			else if (part !== '') out.push({ type: 'text', text: part })
		}
	}
}

/** Pastes that do not fit a line stand in it as a mark; the mark becomes the text when the line is sent. */
export class Pastes {
	private readonly texts = new Map<string, string>()

	/** What to put into the line: the text itself when it is one short plain line, else a mark. */
	take(text: string, plain: (text: string) => boolean): string {
		if (text.length <= 500 && !/[\n\t]/.test(text) && plain(text)) return text
		// A line end at the end begins no line.
		const lines = text.replace(/\n$/, '').split('\n').length
		const mark = `[paste ${this.texts.size + 1}: ${lines > 1 ? `${lines} lines` : `${text.length} characters`}]`
		this.texts.set(mark, text)
		return mark
	}

	expand(line: string): string {
		return line.replace(/\[paste \d+: \d+ (?:lines|characters)\]/g, (mark) => this.texts.get(mark) ?? mark)
	}
}
