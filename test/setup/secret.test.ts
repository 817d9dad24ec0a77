// The hidden input: what is typed or pasted arrives whole, and never reaches the screen.
import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { terminalAsk } from '../../src/setup/ask.ts'
import { readSecret } from '../../src/setup/secret.ts'

function terminal(dumb = false) {
	const modes: boolean[] = []
	const stdin = Object.assign(new PassThrough(), { setRawMode: (on: boolean) => void modes.push(on) })
	const stdout = Object.assign(new PassThrough(), { columns: 80 })
	let text = ''
	stdout.on('data', (chunk: Buffer) => {
		text += chunk.toString()
	})
	return { streams: { stdin, stdout, dumb }, stdin, modes, shown: () => text }
}

const pause = () => new Promise((done) => setTimeout(done, 5))

async function typed(...chunks: string[]) {
	const tty = terminal()
	const answer = readSecret(tty.streams, 'Key:')
	answer.catch(() => {})
	for (const chunk of chunks) {
		tty.stdin.write(chunk)
		await pause()
	}
	const value = await answer
	expect(tty.modes).to.deep.equal([true, false])
	expect(tty.shown().match(/\u001b\[\?2004[hl]/g)).to.deep.equal(['\u001b[?2004h', '\u001b[?2004l'])
	if (value.length > 3) expect(tty.shown()).to.not.include(value)
	return value
}

describe('setup: hidden input', () => {
	it('typed key by key, corrected, begun anew', async () => {
		expect(await typed('s', 'k', '-', 'a', 'b', '\r')).to.equal('sk-ab')
		expect(await typed('sk-abX\u007f', 'c\r')).to.equal('sk-abc')
		expect(await typed('wrong', '\u0015', 'right\n')).to.equal('right')
	})

	it('Z01 a paste keeps its line breaks, also cut in pieces, and the Enter after it ends it', async () => {
		expect(await typed('\u001b[200~sk-a\r\nsk-b\u001b[201~', '\r')).to.equal('sk-a\n\nsk-b')
		expect(await typed('\u001b[20', '0~sk-a\nb\u001b', '[201~', '\r')).to.equal('sk-a\nb')
		// A terminal that does not mark pastes.
		expect(await typed('sk-a\nsk-b\n')).to.equal('sk-a\nsk-b')
	})

	it('one dot a character, up to a number; a backspace takes one back', async () => {
		const tty = terminal()
		const answer = readSecret(tty.streams, 'Key:')
		tty.stdin.write('abc')
		await pause()
		expect(tty.shown().endsWith('•••')).to.equal(true)
		tty.stdin.write('\u007f')
		await pause()
		expect(tty.shown().endsWith('\b \b')).to.equal(true)
		tty.stdin.write('x'.repeat(500))
		await pause()
		expect(tty.shown().match(/•/g)!.length).to.be.at.most(42)
		tty.stdin.write('\r')
		expect(await answer).to.have.length(502)
	})

	it('cursor keys mean nothing, a character of two units and split bytes stay whole', async () => {
		expect(await typed('a\u001b[D\u001bOAb\r')).to.equal('ab')
		const tty = terminal()
		const answer = readSecret(tty.streams, 'Key:')
		const bytes = Buffer.from('ä😀')
		for (const byte of bytes) {
			tty.stdin.write(Buffer.from([byte]))
			await pause()
		}
		tty.stdin.write('\r')
		expect(await answer).to.equal('ä😀')
	})

	it('Ctrl-C, Ctrl-D on nothing, and the end of input leave; the terminal is as it was', async () => {
		for (const leave of ['\u0003', '\u0004', 'abc\u0003', '\u001b[200~abc\u0003', null]) {
			const tty = terminal()
			const answer = readSecret(tty.streams, 'Key:')
			if (leave === null) tty.stdin.end()
			else tty.stdin.write(leave)
			const error = await answer.then(
				() => null,
				(thrown: Error) => thrown,
			)
			expect(error?.name, String(leave)).to.equal('SetupCancelled')
			expect(tty.modes).to.deep.equal([true, false])
			expect(tty.shown()).to.not.include('abc')
		}
	})

	it('a dumb terminal gets no escape sequence: numbers choose, and the key is hidden all the same', async () => {
		const tty = terminal(true)
		const ask = terminalAsk(tty.streams)
		const chosen = ask.choose('Which?', [
			{ value: 1, name: 'one' },
			{ value: 2, name: 'two', note: 'x\u001b[31m' },
		])
		tty.stdin.write('7\n')
		await pause()
		tty.stdin.write('2\n')
		expect(await chosen).to.equal(2)
		const yes = ask.confirm('Sure?', false)
		tty.stdin.write('y\n')
		expect(await yes).to.equal(true)
		const text = ask.text('Name:', { initial: 'me', check: (one) => (one === 'me' ? null : 'no') })
		tty.stdin.write('you\n')
		await pause()
		tty.stdin.write('\n')
		expect(await text).to.equal('me')
		const secret = ask.secret('Key:')
		tty.stdin.write('sk-hidden\r')
		expect(await secret).to.equal('sk-hidden')
		expect(tty.shown()).to.not.include('\u001b').and.not.include('sk-hidden')
		expect(tty.shown()).to.include('A number from 1 to 2')
		const left = ask.text('More?')
		tty.stdin.end()
		expect(await left.catch((error: Error) => error.name)).to.equal('SetupCancelled')
	})
})
