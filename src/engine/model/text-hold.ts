// Holds back streamed text that may be markup of a tool call, so that it is not shown as an answer before it is known what it is.
import { inFence } from './text-calls.ts'
import { markers, openers } from './text-formats.ts'

/** How long a head that looks like bare JSON or a fence is held without the sign of a call. */
const patience = 240

/**
 * Takes deltas, gives back what may be shown now. Words pass at once; from the first marker of a call on (outside code) all is
 * held until `end`. A leading `<think>…</think>` is told apart.
 */
export class TextHold {
	private readonly parts: string[] = []
	/** Text that is not shown yet; '' on the fast path. */
	private held = ''
	private state: 'head' | 'think' | 'open' | 'marked' = 'head'
	private readonly thought: string[] = []

	/** Everything but thinking, so far. */
	get text(): string {
		return this.parts.join('')
	}
	get thinking(): string {
		return this.thought.join('')
	}
	/** What has not been shown. */
	get rest(): string {
		return this.held
	}

	push(delta: string): { text: string; thinking: string } {
		if (this.state === 'open' && this.held === '' && !/[<[`]/.test(delta)) {
			this.parts.push(delta)
			return { text: delta, thinking: '' }
		}
		if (this.state === 'think') return this.think(delta)
		if (this.state === 'head') {
			const all = this.held + delta
			const bare = all.trimStart()
			if (bare.startsWith('<think>')) {
				this.held = ''
				this.parts.length = 0
				this.state = 'think'
				return this.think(bare.slice('<think>'.length))
			}
			if (bare === '' || (bare.length < 7 && '<think>'.startsWith(bare))) {
				this.held = all
				this.parts.push(delta)
				return nothing
			}
			this.parts.push(delta)
			this.held = all
			if (mayBeCall(bare)) return nothing
			this.state = 'open'
			return this.open()
		}
		this.parts.push(delta)
		this.held += delta
		return this.state === 'marked' ? nothing : this.open()
	}

	private open(): { text: string; thinking: string } {
		const text = this.held
		const find = new RegExp(markers)
		for (let match = find.exec(text); match; match = find.exec(text)) {
			const all = this.text
			const at = all.length - text.length + match.index
			if (match[0].startsWith('```') ? inFence(all.slice(0, at), at) : all[at - 1] === '`' || inFence(all, at)) continue
			this.state = 'marked'
			this.held = text.slice(match.index)
			return { text: text.slice(0, match.index), thinking: '' }
		}
		const keep = tailStart(text)
		this.held = text.slice(keep)
		return { text: text.slice(0, keep), thinking: '' }
	}

	private think(delta: string): { text: string; thinking: string } {
		const all = this.held + delta
		const end = all.indexOf('</think>')
		if (end >= 0) {
			const thinking = all.slice(0, end)
			this.thought.push(thinking)
			this.held = ''
			this.state = 'head'
			const after = all.slice(end + '</think>'.length).trimStart()
			return { text: after ? this.push(after).text : '', thinking }
		}
		// The closing tag may be cut in two.
		const cut = all.lastIndexOf('<')
		const keep = cut >= 0 && '</think>'.startsWith(all.slice(cut)) ? cut : all.length
		this.held = all.slice(keep)
		const thinking = all.slice(0, keep)
		if (thinking) this.thought.push(thinking)
		return { text: '', thinking }
	}

	/** Ends the thinking that was never closed, so that nothing is lost. */
	end(): void {
		if (this.state === 'think' && this.held) this.thought.push(this.held)
		if (this.state === 'think') this.held = ''
	}
}

const nothing = { text: '', thinking: '' }

/** Whether a reply that begins so may still be nothing but a call without a marker. */
const mayBeCall = (bare: string): boolean => {
	if (bare.startsWith('{') || /^\[\s*(\{|$)/.test(bare))
		return bare.length < patience || /"(name|function)"\s*:/.test(bare.slice(0, patience))
	if (bare.startsWith('['))
		return /^\[\s*[A-Za-z_]?[\w.-]*$/.test(bare.slice(0, 80)) || /^\[\s*[A-Za-z_][\w.-]*\(/.test(bare)
	if (bare.startsWith('`')) return bare.length < 16 || /^```[a-z_]*[ \t]*\n\s*[{[]/.test(bare)
	return false
}

/** Where a possible beginning of a marker at the end of a text starts; its length when there is none. */
const tailStart = (text: string): number => {
	for (let i = Math.max(0, text.length - 24); i < text.length; i++) {
		const c = text[i]!
		if (c === '<' || c === '[') {
			const tail = text.slice(i)
			if (openers.some((opener) => opener.startsWith(tail))) return i
			if (/^<[｜‖|]{1,4}\s?(D(S(M(L(\s?[｜‖|]{0,4})?)?)?)?)?$/.test(tail)) return i
		}
		if (c === '`' && /^`{1,3}[a-z_]*[ \t]*\n?\s*$/.test(text.slice(i)) && (i === 0 || text[i - 1] === '\n')) return i
	}
	return text.length
}
