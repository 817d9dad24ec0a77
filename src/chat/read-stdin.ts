// What is piped in: a whole text for a prompt, or lines of messages. Used by print.
import { type Image, imageFromBase64, type PromptInput, tooManyImages, UserError } from '../engine/index.ts'
import type { Stdio } from './stdio.ts'

/** More than this is no prompt; the engine would have to cut it. */
const maxBytes = 8 * 1024 * 1024
/** One line of input that is longer is refused. */
const maxLine = 32 * 1024 * 1024

interface ReadOptions {
	/** A prompt was given too, so stdin may well be a parent's pipe that nobody means. */
	optional: boolean
	/** Says that it waits, or that it went on without. */
	say(text: string): void
	signal: AbortSignal
	/** Milliseconds until the first word; a socket is then left alone when optional. */
	patienceMs?: number
}

/**
 * The whole of stdin, or null when there is none to read. A pipe of a shell is waited for (its writer may take long),
 * with a word after a while; a socket that a parent left open is given up when there is a prompt already.
 */
export async function readAll(io: Stdio, { optional, say, signal, patienceMs }: ReadOptions): Promise<string | null> {
	const kind = io.stdinKind()
	if (kind === 'terminal') return null
	const giveUp = optional && kind === 'socket'
	const stdin = io.stdin
	const chunks: Buffer[] = []
	let size = 0
	const outcome = await new Promise<'end' | 'quiet' | 'large' | Error>((done) => {
		const finish = (what: 'end' | 'quiet' | 'large' | Error) => {
			clearTimeout(timer)
			stdin.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onError)
			signal.removeEventListener('abort', onEnd)
			stdin.pause()
			done(what)
		}
		const onEnd = () => finish('end')
		const onError = (error: NodeJS.ErrnoException) =>
			finish(error.code === 'EAGAIN' || error.code === 'EIO' ? 'end' : error)
		const onData = (chunk: Buffer | string) => {
			clearTimeout(timer)
			const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
			size += bytes.length
			if (size > maxBytes) return finish('large')
			chunks.push(bytes)
		}
		const timer = setTimeout(
			() => (giveUp ? finish('quiet') : say('waiting for stdin to end (for no input, start with </dev/null).')),
			patienceMs ?? (giveUp ? 1000 : 3000),
		)
		stdin.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onError)
		signal.addEventListener('abort', onEnd, { once: true })
		if (signal.aborted || stdin.readableEnded || stdin.destroyed) finish('end')
	})
	// A handle that nobody reads would keep the process alive.
	const unref = (stdin as { unref?: () => void }).unref
	if (outcome !== 'end' && unref) unref.call(stdin)
	if (outcome === 'quiet') {
		say('nothing came on stdin, so it is left out (for no input, start with </dev/null).')
		return null
	}
	if (outcome === 'large')
		throw new UserError('More than 8 MB came on stdin.', 'Put it into a file and name the file in the prompt.')
	if (outcome instanceof Error) throw new UserError(`stdin cannot be read: ${outcome.message}`)
	const bytes = Buffer.concat(chunks)
	if (bytes.includes(0))
		throw new UserError('What came on stdin is no text.', 'Put it into a file and name the file in the prompt.')
	return new TextDecoder('utf-8', { ignoreBOM: false }).decode(bytes)
}

/** Lines as they come, without their ends; a last line without an end counts. Throws UserError for a line past the bound. */
export async function* readLines(io: Stdio, signal: AbortSignal): AsyncGenerator<string> {
	const decoder = new TextDecoder('utf-8')
	let parts: string[] = []
	let length = 0
	const stop = () => io.stdin.destroy()
	signal.addEventListener('abort', stop, { once: true })
	try {
		for await (const chunk of io.stdin) {
			let text = typeof chunk === 'string' ? chunk : decoder.decode(chunk as Buffer, { stream: true })
			for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n')) {
				parts.push(text.slice(0, at))
				yield parts.join('').replace(/\r$/, '')
				parts = []
				length = 0
				text = text.slice(at + 1)
			}
			if (text !== '') parts.push(text)
			length += text.length
			if (length > maxLine) throw new UserError('A line on stdin is longer than 32 million characters.')
		}
	} catch (error) {
		if (!signal.aborted) throw error
	} finally {
		signal.removeEventListener('abort', stop)
	}
	if (!signal.aborted && parts.length > 0) yield parts.join('')
}

/**
 * One line of `--input-format stream-json` as a prompt: text blocks, and image blocks with base64 in them. Rejects with
 * UserError that says what is wrong with it.
 */
export async function promptOfLine(line: string, number: number): Promise<PromptInput> {
	const wrong = (what: string) =>
		new UserError(
			`Line ${number} of stdin ${what}.`,
			'Each line is {"type":"user","message":{"role":"user","content":"…"}}; see docs/json-output.md.',
		)
	let value: unknown
	try {
		value = JSON.parse(line)
	} catch {
		throw wrong('is no JSON')
	}
	if (!isObject(value) || value.type !== 'user') throw wrong('has no "type":"user"')
	const message = value.message
	if (!isObject(message) || message.role !== 'user') throw wrong('has no message of the role "user"')
	const { content } = message
	const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
	if (!Array.isArray(blocks)) throw wrong('has a content that is no text and no list of blocks')
	const texts: string[] = []
	const images: Image[] = []
	for (const block of blocks as unknown[]) {
		if (isObject(block) && block.type === 'text' && typeof block.text === 'string') texts.push(block.text)
		else if (isObject(block) && block.type === 'image') {
			const { source } = block
			if (!isObject(source) || source.type !== 'base64' || typeof source.data !== 'string')
				throw wrong('has an image block without base64 in it (addresses are not fetched)')
			const image = await imageFromBase64(source.data, `image ${images.length + 1}`)
			if ('refused' in image) throw wrong(`has a bad image: ${image.refused.replace(/\.$/, '')}`)
			images.push(image)
		} else throw wrong('has a content block that is no text and no image (others are not taken)')
	}
	const many = tooManyImages(images)
	if (many !== null) throw wrong(`has too many images: ${many.replace(/\.$/, '')}`)
	const text = texts.join('\n')
	if (text.trim() === '' && images.length === 0) throw wrong('has an empty text')
	return images.length > 0 ? { text, images } : { text }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
	typeof value === 'object' && value !== null && !Array.isArray(value)
