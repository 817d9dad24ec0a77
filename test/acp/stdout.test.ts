// What must never reach the protocol, and what must still reach it.
import { PassThrough, Readable } from 'node:stream'
import { expect } from 'chai'
import { input } from '../../src/acp/input.ts'
import { type Out, protocolOutput } from '../../src/acp/stdout.ts'

/** A stream like stdout or stderr, with what was written to it. */
function stream() {
	const out = new PassThrough()
	const chunks: Buffer[] = []
	out.on('data', (chunk: Buffer) => chunks.push(chunk))
	return { out: out as unknown as Out & PassThrough, text: () => Buffer.concat(chunks).toString() }
}

const settle = () => new Promise((done) => setImmediate(done))

describe('acp: stdout', () => {
	it('D02 acp-01 what others write goes to stderr, the protocol to stdout', async () => {
		const [stdout, stderr] = [stream(), stream()]
		const write = protocolOutput(stdout.out, stderr.out)
		stdout.out.write('a notice\n')
		stdout.out.write(Buffer.from('bytes\n'))
		stdout.out.write('aGV4\n', 'base64')
		let called = 0
		stdout.out.write('with a callback\n', () => called++)
		stdout.out.write('and both\n', 'utf8', () => called++)
		await write(Buffer.from('{"jsonrpc":"2.0"}\n'))
		await settle()
		expect(stdout.text()).to.equal('{"jsonrpc":"2.0"}\n')
		expect(stderr.text()).to.equal('a notice\nbytes\nhexwith a callback\nand both\n')
		expect(called).to.equal(2)
	})

	it('D02 acp-01 a console over it and a stream piped into it do not end it or reach it', async () => {
		const [stdout, stderr] = [stream(), stream()]
		const write = protocolOutput(stdout.out, stderr.out)
		new console.Console(stdout.out as unknown as NodeJS.WritableStream).log('from a library')
		Readable.from(['piped\n']).pipe(stdout.out)
		await settle()
		await settle()
		let ended = false
		stdout.out.end('last\n', () => {
			ended = true
		})
		stdout.out.end(() => {})
		await write(Buffer.from('{}\n'))
		await settle()
		expect(stdout.text()).to.equal('{}\n')
		expect(stderr.text()).to.equal('from a library\npiped\nlast\n')
		expect(ended).to.equal(true)
	})

	it('D02 takes over the guard that was put in place before anything was loaded', async () => {
		const [stdout, stderr] = [stream(), stream()]
		const real = stdout.out.write
		stdout.out.write = Object.assign((...args: unknown[]) => stderr.out.write(...(args as [string])), {
			protocol: real,
		}) as never
		const write = protocolOutput(stdout.out, stderr.out)
		stdout.out.write('early\n')
		await write(Buffer.from('{}\n'))
		await settle()
		expect(stdout.text()).to.equal('{}\n')
		expect(stderr.text()).to.equal('early\n')
	})

	it('a reader that is gone is an error of the write, not of the process', async () => {
		const [stdout, stderr] = [stream(), stream()]
		const write = protocolOutput(stdout.out, stderr.out)
		stdout.out.destroy(Object.assign(new Error('EPIPE'), { code: 'EPIPE' }))
		await settle()
		let failed = false
		await write(Buffer.from('{}\n')).catch(() => {
			failed = true
		})
		expect(failed).to.equal(true)
	})
})

describe('acp: stdin', () => {
	const pass = async (
		chunks: (string | Uint8Array)[],
		limit?: number,
		refused: [string | number | null, number][] = [],
	): Promise<string> => {
		const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk))
		const from = Readable.toWeb(Readable.from(bytes, { objectMode: true })) as unknown as ReadableStream<Uint8Array>
		let text = ''
		const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
		for await (const chunk of from.pipeThrough(input((...one) => refused.push(one), limit)) as any)
			text += decoder.decode(chunk, { stream: true })
		return text
	}

	for (const [what, noise] of [
		['a byte order mark', '\ufeff'],
		['a title sequence', '\u001b]0;user@host: ~\u0007'],
		['a line of greeting', 'Welcome back!\n'],
		['a colour reset and white space', '\u001b[0m  '],
	])
		it(`D06 ${what} in front of the first message is no harm`, async () => {
			const passed = await pass([`${noise}{"a":1}\r\n{"b":2}\n`])
			expect(passed.split('\n').filter((line) => line.startsWith('{'))).to.deep.equal(['{"a":1}\r', '{"b":2}'])
			expect(passed.replace('Welcome back!\n', '').startsWith('{')).to.equal(true)
		})

	it('D06 noise cut anywhere, and braces inside messages, change nothing', async () => {
		const text = '\u001b]0;t\u0007{"a":"{x}"}\n\u001b[0m{"b":"\u001b"}\n'
		for (let cut = 1; cut < text.length; cut++)
			expect(await pass([text.slice(0, cut), text.slice(cut)])).to.equal('{"a":"{x}"}\n{"b":"\u001b"}\n')
	})

	it('a message that is too large does not pass; its id is told, wherever it stands, and the next one is read', async () => {
		const big = 'x'.repeat(3000)
		for (const [message, id] of [
			[`{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":8,"t":"${big}"}}`, 7],
			[`{"jsonrpc":"2.0","method":"id","id":"a\\"b","params":{"t":"${big}"}}`, 'a"b'],
			[`{"method":"m","params":{"id":8,"t":"${big}"},"jsonrpc":"2.0","id":9}`, 9],
			[`{"method":"m","params":{"t":"${big}"}, "id": 10 , "jsonrpc": "2.0"}`, 10],
			[`{"method":"m","params":{"id":8,"t":"${big}"}}`, null],
		] as const)
			for (const size of [1, 7, 1000, 100_000]) {
				const text = `{"a":1}\n${message}\n{"b":2}\n`
				const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g'))!
				const refused: [string | number | null, number][] = []
				expect(await pass(chunks, 2000, refused)).to.equal('{"a":1}\n{"b":2}\n')
				expect(refused).to.deep.equal([[id, message.length + 1]])
			}
		expect(await pass([`{"t":"${big}"}\n`])).to.have.length(big.length + 9)
	})

	it('a line that is no message passes, so that it is answered with an error', async () => {
		expect(await pass(['nonsense\n', '[1,2]\n', 'end'])).to.equal('nonsense\n[1,2]\nend')
		const long = 'x'.repeat(5000)
		expect(await pass([`${long}{"a":1}\n`])).to.equal(`${long}{"a":1}\n`)
	})
})
