// Reads a key from the terminal without showing it, and keeps a paste whole: a key with a line break in it is told, not cut. Used by ask.
import { SetupCancelled } from '../engine/setup/index.ts'
import type { Streams } from './ask.ts'

const pasteOn = '\u001b[?2004h'
const pasteOff = '\u001b[?2004l'

/**
 * One dot stands for each character, up to a number, so that a paste is seen to arrive. Enter ends it (in a paste it is a
 * character), Ctrl-U begins anew, Ctrl-C, Ctrl-D on nothing and the end of input reject with SetupCancelled.
 */
export function readSecret({ stdin, stdout, dumb, signal }: Streams, question: string): Promise<string> {
	return new Promise((resolve, reject) => {
		let text = ''
		let dots = 0
		let pasting = false
		let rest = ''
		let done = false
		const settle = (end: () => void) => {
			if (done) return
			done = true
			clearTimeout(timer)
			stdin.off('data', read)
			stdin.off('end', leave)
			stdin.off('close', leave)
			stdin.off('error', leave)
			signal?.removeEventListener('abort', leave)
			stdin.setRawMode?.(false)
			stdin.pause()
			stdout.write(`${dumb ? '' : pasteOff}\n`)
			end()
		}
		const leave = () => settle(() => reject(new SetupCancelled('The input ended.')))
		const draw = () => {
			const wanted = Math.min([...text].length, 40)
			if (dumb) return
			if (wanted > dots) stdout.write('•'.repeat(wanted - dots))
			else if (wanted < dots) stdout.write('\b \b'.repeat(dots - wanted))
			dots = wanted
		}
		const key = (char: string): void => {
			if (char === '\r' || char === '\n') settle(() => resolve(text))
			else if (char === '\u0003' || (char === '\u0004' && text === '')) leave()
			else if (char === '\u007f' || char === '\b') text = [...text].slice(0, -1).join('')
			else if (char === '\u0015') text = ''
			else if (char >= ' ') text += char
		}
		let timer: NodeJS.Timeout | undefined
		const feed = (chunk: string) => {
			clearTimeout(timer)
			let left = rest + chunk
			rest = ''
			// Without the marks of a paste, what comes in one piece with more behind a line break is one too.
			if (!pasting && !left.includes('\u001b') && /[\r\n](?=[^\r\n])/.test(left)) {
				text += left.replace(/[\r\n]+$/, '')
				draw()
				return settle(() => resolve(text))
			}
			while (left !== '' && !done) {
				if (left.startsWith('\u001b')) {
					const sequence = /^\u001b(?:\[[0-?]*[ -/]*[@-~]|O.)/.exec(left)?.[0]
					if (sequence === undefined && left.length < 12 && /^\u001b(?:\[[0-?]*[ -/]*|O)?$/.test(left)) {
						// Its rest may still come; alone it is the Escape key, which means nothing here.
						rest = left
						timer = setTimeout(() => {
							rest = ''
						}, 200)
						break
					}
					if (sequence === '\u001b[200~') pasting = true
					else if (sequence === '\u001b[201~') pasting = false
					left = left.slice(sequence?.length ?? 1)
					continue
				}
				const char = String.fromCodePoint(left.codePointAt(0)!)
				left = left.slice(char.length)
				if (pasting && char !== '\u0003') text += char === '\r' ? '\n' : char
				else key(char)
			}
			if (!done) draw()
		}
		const decoder = new TextDecoder()
		const read = (chunk: Buffer | string) =>
			feed(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }))
		stdin.setRawMode?.(true)
		stdout.write(`${question} ${dumb ? '' : pasteOn}`)
		stdin.on('data', read)
		stdin.on('end', leave)
		stdin.on('close', leave)
		stdin.on('error', leave)
		signal?.addEventListener('abort', leave, { once: true })
		stdin.resume()
		if (signal?.aborted) leave()
	})
}
