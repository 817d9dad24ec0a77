// Events as words for a person: one pure step from an event to text. The plain chat shows all of it, -p the part beside the answer.
import { type AgentEvent, oneLine, type TurnEnd, type Usage, unifiedDiff, visible } from '../engine/index.ts'
import { createTextFilter, safeText } from './safe-text.ts'
import { type Paint, paintDiff } from './style.ts'
import { problemText, reasonText } from './words.ts'

export interface RenderOptions {
	paint: Paint
	/** Lines of a result or a change shown below its call. */
	resultLines?: number
	/** Show the model's thinking instead of a word that it thinks. */
	thinking?: boolean
}

/** Text to show for an event; `answer` is the model's own words, everything else is about the work. */
export interface Shown {
	answer: string
	about: string
}

/** Lines shown of a command of the person's own. */
const ownLines = 201

const nothing: Shown = { answer: '', about: '' }

/** Keeps only what a stream needs: the filter, calls under way, whether thinking was said. */
export class Renderer {
	private readonly paint: Paint
	private lines: number
	private readonly usual: number
	private readonly thinking: boolean
	private text = createTextFilter()
	private thought = createTextFilter()
	private saidThinking = false
	private answering = false
	private calls = new Map<string, Extract<AgentEvent, { type: 'tool_call' }>>()
	/** Changes that a question has shown already. */
	private asked = new Set<string>()

	constructor(options: RenderOptions) {
		this.paint = options.paint
		this.usual = options.resultLines ?? 8
		this.lines = this.usual
		this.thinking = options.thinking ?? false
	}

	/** What runs now is the person's own command: they asked for its output, so more of it is shown. */
	own(on: boolean): void {
		this.lines = on ? ownLines : this.usual
	}

	/** Text from model and tools comes out safe; the caller starts `about` on a line of its own. */
	event(event: AgentEvent): Shown {
		switch (event.type) {
			case 'text_delta':
				this.answering = true
				return { answer: this.text.push(event.text), about: '' }
			case 'thinking_delta':
				return { answer: '', about: this.think(event.text) }
			case 'message': {
				const rest = this.text.end()
				const answer = this.answering ? `${rest}\n` : ''
				this.answering = false
				const thought = this.saidThinking && this.thinking ? `${this.thought.end()}\n` : ''
				this.saidThinking = false
				return { answer, about: thought }
			}
			case 'tool_call':
				this.calls.set(event.callId, event)
				return { answer: '', about: `${this.paint('cyan', '●')} ${this.paint('bold', oneLine(event.info.title))}\n` }
			case 'tool_result':
				return { answer: '', about: this.result(event) }
			case 'question':
				if (event.request.callId !== undefined) this.asked.add(event.request.callId)
				return nothing
			case 'notice':
				return { answer: '', about: this.notice(event.level, event.text) }
			case 'model_retry': {
				const wait = event.delayMs >= 1000 ? ` in ${Math.round(event.delayMs / 1000)} s` : ''
				const gone = event.void && this.answering ? ' What was shown of the reply does not count.' : ''
				if (event.void) {
					this.text.end()
					this.answering = false
				}
				return {
					answer: '',
					about: this.notice(
						'warning',
						`${oneLine(event.reason)}; trying again${wait} (${event.attempt} of ${event.of}).${gone}`,
					),
				}
			}
			case 'compaction':
				return { answer: '', about: compaction(event, this.paint) }
			case 'server_tool': {
				const what = event.result === undefined ? '' : ' (done)'
				return { answer: '', about: `${this.paint('cyan', '●')} ${oneLine(event.name)}${what}\n` }
			}
			case 'mode':
				return { answer: '', about: this.paint('dim', `mode: ${event.mode}`).concat('\n') }
			case 'user_text':
				return { answer: '', about: `${this.paint('bold', '>')} ${safeText(event.text)}\n` }
			case 'turn_end':
				return { answer: '', about: this.end(event.end) }
			default:
				return nothing
		}
	}

	/** A conversation that is shown anew has whole messages and no deltas. */
	past(event: AgentEvent): Shown {
		if (event.type !== 'message') return this.event(event)
		const text = event.message.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
		return { answer: text === '' ? '' : `${safeText(text)}\n`, about: '' }
	}

	private think(text: string): string {
		if (this.thinking) {
			this.saidThinking = true
			return this.paint('dim', this.thought.push(text))
		}
		if (this.saidThinking) return ''
		this.saidThinking = true
		return `${this.paint('dim', '· thinking')}\n`
	}

	notice(level: 'info' | 'warning', text: string): string {
		const shown = safeText(text).trimEnd()
		return level === 'warning' ? `${this.paint('yellow', `! ${shown}`)}\n` : `${this.paint('dim', `· ${shown}`)}\n`
	}

	private result(event: Extract<AgentEvent, { type: 'tool_result' }>): string {
		const call = this.calls.get(event.callId)
		this.calls.delete(event.callId)
		const asked = this.asked.delete(event.callId)
		if (event.status === 'ok') {
			const change = call?.info.change
			if (change && asked) return indent(partly(event.data) ?? 'done')
			if (change) return this.cut(paintDiff(visible(unifiedDiff(change)), this.paint), this.lines * 3)
			// What was read is for the model; a person sees how much it was.
			if (call?.info.kind === 'read') return indent(this.paint('dim', countLines(event.text)))
			return this.cut(safeText(event.text), this.lines)
		}
		const first = safeText(event.text)
		if (event.status === 'denied') return this.cut(this.paint('yellow', first.split('\n', 1)[0]!), 1)
		if (event.status === 'cancelled') return indent(this.paint('dim', 'stopped'))
		return this.cut(`${this.paint('red', 'failed:')} ${first}`, this.lines)
	}

	/** At most so many lines; says how many are left out. */
	private cut(text: string, max: number): string {
		const lines = text.trimEnd().split('\n')
		const shown = lines.length > max ? lines.slice(0, max - 1) : lines
		const out = shown.map((line) => (line.length > 500 ? `${line.slice(0, 500).toWellFormed()}…` : line))
		const left = lines.length - shown.length
		if (left > 0) out.push(this.paint('dim', `… ${left.toLocaleString('en')} more lines`))
		return indent(out.join('\n'))
	}

	private end(end: TurnEnd): string {
		const text = this.text.end()
		const open = this.answering ? `${text}\n` : ''
		this.answering = false
		this.saidThinking = false
		this.calls.clear()
		this.asked.clear()
		if (end.reason === 'done') return open
		const { error } = end
		const why = error ? problemText(error) : reasonText[end.reason]
		return `${open}${this.paint(end.reason === 'cancelled' ? 'yellow' : 'red', safeText(why))}\n`
	}
}

const indent = (text: string): string => `${text.replace(/^/gm, '  ')}\n`

/** Of an edit of which only some parts were written. */
const partly = (data: unknown): string | null => {
	const parts = (data as { parts?: { taken?: unknown; of?: unknown } } | undefined)?.parts
	return parts ? `done: ${Number(parts.taken)} of ${Number(parts.of)} parts` : null
}

const countLines = (text: string): string => {
	// A line end at the end begins no line.
	const count = text.replace(/\n$/, '').split('\n').length
	return count === 1 ? '1 line' : `${count} lines`
}

function compaction(event: Extract<AgentEvent, { type: 'compaction' }>, paint: Paint): string {
	const size = (tokens: number) => tokens.toLocaleString('en')
	if (event.phase === 'start')
		return `${paint('dim', `· summarising the conversation (${size(event.before)} tokens)`)}\n`
	if (event.phase === 'done') return `${paint('dim', `· now about ${size(event.after ?? 0)} tokens`)}\n`
	return `${paint('yellow', `! the summary failed${event.text ? `: ${oneLine(event.text)}` : ''}`)}\n`
}

/** What a turn took, in one line. */
export const usageLine = (usage: Usage, durationMs: number): string => {
	const cached = usage.cacheRead > 0 ? ` (${usage.cacheRead.toLocaleString('en')} cached)` : ''
	const input = (usage.input + usage.cacheRead + usage.cacheWrite).toLocaleString('en')
	const cost = usage.cost === null ? 'cost unknown' : `$${usage.cost.toFixed(4)}`
	return `${(durationMs / 1000).toFixed(1)} s · ${input} tokens in${cached}, ${usage.output.toLocaleString('en')} out · ${cost}`
}
