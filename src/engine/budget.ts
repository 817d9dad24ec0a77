// What a turn may spend: tokens and dollars reserved before a request and settled after it, steps, and repeated calls.
import type { Image, Message } from './types.ts'

/** Rough tokens of a text: four characters each; good to a few percent on code, enough to decide when to stop. */
export const estimateTokens = (chars: number): number => Math.ceil(chars / 4)

/**
 * Tokens of a picture by its size: providers cut it into patches and make it smaller first when it is large, so the
 * length of its base64 says nothing.
 */
export const imageTokens = ({ width, height }: Pick<Image, 'width' | 'height'>): number =>
	Math.min(Math.max(Math.ceil((width * height) / 750), 64), 4800)

/**
 * Pictures together in one request, and so in one prompt. Twenty is what all large providers take at full size (above it
 * Anthropic wants small ones); the base64 stays below the smallest limit of a whole request (20 MB) with room for words.
 */
export const requestImages = { count: 20, base64: 16 * 1024 * 1024 } as const

/** Why so many pictures cannot go with one prompt, as a sentence; null when they can. */
export const tooManyImages = (images: readonly Pick<Image, 'data'>[]): string | null =>
	images.length > requestImages.count
		? `${images.length} images are too many for one prompt; ${requestImages.count} go at most.`
		: images.reduce((sum, { data }) => sum + data.length, 0) > requestImages.base64
			? 'The images of one prompt are more than 16 MB of base64 (12 MB as files) together.'
			: null

/** Characters of messages as a request would carry them, roughly; a picture counts as a text of as many tokens. */
export const messageChars = (messages: readonly Message[]): number => {
	let chars = 0
	for (const message of messages)
		for (const block of message.blocks) {
			if (block.type === 'text' || block.type === 'thinking') chars += block.text.length
			else if (block.type === 'tool_result') {
				chars += block.text.length + 60
				for (const image of block.images ?? []) chars += imageTokens(image) * 4
			} else if (block.type === 'image') chars += imageTokens(block) * 4
			else if (block.type === 'tool_call') chars += block.name.length + JSON.stringify(block.input).length + 60
			else chars += JSON.stringify(block.raw).length
		}
	return chars
}

export interface Reservation {
	/** The output limit that the request may use: never more than what is left. */
	maxOutput: number
	/** What was really spent; null (failed or cancelled with no usage) counts the whole reservation as spent. */
	settle(spent: { tokens: number; cost: number | null } | null): void
}

/**
 * One budget a turn, shared with its children: every model call reserves its request and its output limit first.
 * `limit` and `maxCost` of null mean unlimited. Prices are per token.
 */
export class TokenBudget {
	used = 0
	cost = 0
	private held = 0
	private heldCost = 0
	private readonly limit: number | null
	private readonly maxCost: number | null

	constructor(limit: number | null, maxCost: number | null) {
		this.limit = limit
		this.maxCost = maxCost
	}

	/** The smallest answer worth asking for. */
	static readonly floor = 256

	/** Null when what is left does not cover the request and a minimal answer; says which budget ran out. */
	reserve(
		input: number,
		maxOutput: number,
		price: { input: number; output: number } | null,
	): Reservation | 'token_budget' | 'cost_budget' {
		let output = maxOutput
		if (this.limit !== null) {
			const left = this.limit - this.used - this.held - input
			if (left < Math.min(TokenBudget.floor, maxOutput)) return 'token_budget'
			output = Math.min(output, left)
		}
		const rate = price ?? { input: 0, output: 0 }
		if (this.maxCost !== null) {
			const left = this.maxCost - this.cost - this.heldCost - input * rate.input
			const affordable = rate.output > 0 ? Math.floor(left / rate.output) : left >= 0 ? output : -1
			if (affordable < Math.min(TokenBudget.floor, maxOutput)) return 'cost_budget'
			output = Math.min(output, affordable)
		}
		const tokens = input + output
		const cost = input * rate.input + output * rate.output
		this.held += tokens
		this.heldCost += cost
		let open = true
		return {
			maxOutput: output,
			settle: (spent) => {
				if (!open) return
				open = false
				this.held -= tokens
				this.heldCost -= cost
				this.used += spent?.tokens ?? tokens
				this.cost += spent ? (spent.cost ?? 0) : cost
			},
		}
	}
}

/** Counts equal calls with equal results: a model that goes in a circle gets a hint, then is stopped. */
export class RepeatWatch {
	private last = ''
	private count = 0
	private readonly denied = new Map<string, number>()
	private readonly hintAt: number
	private readonly stopAt: number

	constructor(hintAt: number, stopAt: number) {
		this.hintAt = hintAt
		this.stopAt = stopAt
	}

	/** One step's calls and results, as one text. */
	step(signature: string): 'go' | 'hint' | 'stop' {
		this.count = signature === this.last ? this.count + 1 : 1
		this.last = signature
		if (this.count >= this.stopAt) return 'stop'
		return this.count >= this.hintAt ? 'hint' : 'go'
	}

	/**
	 * Denials with nothing allowed between them: three of one kind (a command's first word, a file) are the same circle
	 * with small changes, five of any kind are one too.
	 */
	deniedCall(tool: string, input: Record<string, unknown>): 'go' | 'stop' {
		const { command, path } = input
		const what = typeof command === 'string' ? command.trim().split(/\s+/, 1)[0] : typeof path === 'string' ? path : ''
		const kind = `${tool} ${what}`
		const count = (this.denied.get(kind) ?? 0) + 1
		this.denied.set(kind, count)
		const all = [...this.denied.values()].reduce((sum, one) => sum + one, 0)
		return count >= 3 || all >= 5 ? 'stop' : 'go'
	}

	/** Something was allowed and done: the model is getting on. */
	allowedCall(): void {
		this.denied.clear()
	}
}
