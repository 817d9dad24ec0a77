// What a command prints, as it comes: its last lines below its call, gone when the result takes their place. Owned by plain.
import { type AgentEvent, cutHead, oneLine } from '../engine/index.ts'
import type { Output } from './stdio.ts'
import type { Paint } from './style.ts'

/** Lines shown at once, and milliseconds between two drawings, between two counts of the time, and before it is shown. */
const linesShown = 5
const drawMs = 100
const tickMs = 1000
const timeFromMs = 2000

export interface LiveOptions {
	out: Output
	paint: Paint
	/** Milliseconds, from any beginning. */
	now?(): number
}

/**
 * Shows progress of the call that runs, on a terminal only. Anything else that is written erases it first, so that it never
 * stands among what stays; it is drawn again below. Text of a command is shown by its words, never by its escape codes.
 */
export class Live {
	private readonly out: Output
	private readonly paint: Paint
	private readonly now: () => number
	private readonly commands = new Set<string>()
	private call: string | null = null
	private lines: string[] = []
	/** The line that the command has not ended yet. */
	private open = ''
	private count = 0
	private begun = 0
	private drawn = Number.NEGATIVE_INFINITY
	private waiting = false
	private timer: NodeJS.Timeout | null = null
	private ticker: NodeJS.Timeout | null = null

	constructor({ out, paint, now = () => performance.now() }: LiveOptions) {
		this.out = out
		this.paint = paint
		this.now = now
	}

	/** To be told every event of a turn, before it is shown. */
	event(event: AgentEvent): void {
		switch (event.type) {
			case 'tool_call':
				if (event.info.kind === 'execute') this.commands.add(event.callId)
				break
			case 'tool_progress':
				if (event.text !== '') this.take(event.callId, event.text)
				else if (this.commands.has(event.callId)) this.begin(event.callId)
				break
			case 'question':
				// What a second try prints is another output.
				this.clear()
				this.waiting = true
				break
			case 'answer':
				this.waiting = false
				break
			case 'tool_result':
				this.commands.delete(event.callId)
				if (event.callId === this.call) this.stop()
				break
			case 'turn_end':
				this.commands.clear()
				this.stop()
				break
		}
	}

	/** Takes it off the screen; idempotent. */
	stop(): void {
		this.clear()
		this.call = null
		this.waiting = false
		if (this.ticker) clearInterval(this.ticker)
		this.ticker = null
	}

	/** Off the screen for now: something else is about to use the terminal. */
	hide(): void {
		this.out.uncover()
		this.out.flush()
	}

	private begin(callId: string): void {
		if (this.call === callId) return
		this.stop()
		this.call = callId
		this.begun = this.now()
		this.ticker = setInterval(() => this.now() - this.begun >= timeFromMs && this.draw(), tickMs)
		this.ticker.unref()
	}

	private take(callId: string, text: string): void {
		this.begin(callId)
		if (text.startsWith('\r')) this.open = text.slice(1)
		else {
			const more = text.split('\n')
			this.count += more.length
			this.lines = [...this.lines, ...more.slice(-linesShown).map((line) => cutHead(line, 1000))].slice(-linesShown)
			this.open = ''
		}
		const rest = drawMs - (this.now() - this.drawn)
		if (rest <= 0) this.draw()
		else this.timer ??= setTimeout(() => this.draw(), rest)
	}

	private draw(): void {
		if (this.timer) clearTimeout(this.timer)
		this.timer = null
		// A question's line, or a reply that has not ended its line, is not written into.
		if (this.waiting || !this.out.atLineStart) return
		this.drawn = this.now()
		const width = Math.max(20, this.out.columns - 6)
		const most = Math.max(1, Math.min(linesShown, this.out.rows - 3))
		const seen = [...this.lines, ...(this.open === '' ? [] : [this.open])].slice(-most)
		const shown = seen.map((line) => this.paint('dim', `  │ ${oneLine(cutToCells(line, width), 2000)}`))
		const took = this.now() - this.begun
		const words = [
			...(this.count > most ? [`${this.count.toLocaleString('en')} lines`] : []),
			...(took >= timeFromMs ? [`${Math.floor(took / 1000)} s`] : []),
		]
		if (words.length > 0) shown.push(this.paint('dim', `  ${words.join(' · ')}`))
		if (shown.length > 0) this.out.cover(`${shown.join('\n')}\n`, shown.length)
	}

	private clear(): void {
		if (this.timer) clearTimeout(this.timer)
		this.timer = null
		this.out.uncover()
		this.lines = []
		this.open = ''
		this.count = 0
	}
}

// Wide in most terminals: East Asian scripts, full-width forms, emoji.
const wide =
	/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u

/** At most so many cells; what a terminal counts otherwise is cut by the terminal itself. */
export function cutToCells(line: string, cells: number): string {
	let used = 0
	let out = ''
	/** What leaves a cell for the mark of the cut. */
	let kept = ''
	for (const char of line) {
		used += wide.test(char) ? 2 : 1
		if (used > cells) return `${kept}…`
		out += char
		if (used < cells) kept = out
	}
	return out
}
