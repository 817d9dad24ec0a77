// A command's output as it comes: decoded across chunks, bounded in memory whatever the command writes.
import { clip, cutHead, cutTail } from '../text.ts'

/** Keeps the head and the tail of a stream of bytes as text; memory stays below a few times `max` characters. */
export class BoundedText {
	bytes = 0
	#head = ''
	#tail = ''
	#chars = 0
	readonly #max: number
	readonly #half: number

	/** `max`: characters kept, half of them from the start. */
	constructor(max: number) {
		this.#max = max
		this.#half = Math.ceil(max / 2)
	}

	push(text: string): void {
		this.#chars += text.length
		if (this.#chars <= this.#max) {
			this.#head += text
			return
		}
		if (this.#tail === '' && this.#head.length > this.#half) {
			// More than fits for the first time: from now on a head that is fixed and a tail that moves.
			this.#tail = this.#head.slice(this.#half)
			this.#head = this.#head.slice(0, this.#half)
		}
		const room = this.#half - this.#head.length
		this.#head += text.slice(0, room)
		this.#tail += text.slice(room)
		if (this.#tail.length > 4 * this.#max + 65_536) this.#tail = this.#tail.slice(-this.#max)
	}

	/** The text; where something was left out, a line says how much. */
	text(): string {
		if (this.#chars <= this.#max) return this.#head
		const head = cutHead(this.#head, this.#half)
		const tail = cutTail(this.#tail, Math.floor(this.#max / 2))
		const left = this.#chars - head.length - tail.length
		return `${head}\n[… ${left.toLocaleString('en')} characters left out here …]\n${tail}`
	}
}

/** A sink of one stream: bytes in, text to `into`; bytes that are no UTF-8 become U+FFFD, a character split over chunks does not. */
export const decodeInto = (into: BoundedText, progress?: (text: string) => void) => {
	const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
	const push = (text: string) => {
		if (text === '') return
		into.push(text)
		progress?.(text)
	}
	return {
		chunk(bytes: Uint8Array): void {
			into.bytes += bytes.length
			push(decoder.decode(bytes, { stream: true }))
		},
		end: () => push(decoder.decode()),
	}
}

/** Text passed on at most every `everyMs`; of a flood between two times the middle is left out, with a line that says so. */
export const throttled = (report: (text: string) => void, everyMs = 100) => {
	let waiting = ''
	let timer: NodeJS.Timeout | undefined
	const flush = () => {
		clearTimeout(timer)
		timer = undefined
		const text = waiting
		waiting = ''
		if (text !== '') report(clip(text, 65_536))
	}
	return {
		push(text: string): void {
			waiting = waiting.length > 262_144 ? cutHead(waiting, 32_768) + cutTail(waiting, 65_536) + text : waiting + text
			timer ??= setTimeout(flush, everyMs)
		},
		flush,
	}
}
