// A message that is too large to be read ends neither the editor's connection nor its sessions. Drives the built bin.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { bin, environment, place } from '../helpers/cli.ts'
import { removeTemp } from '../helpers/temp.ts'

describe('journey: acp and a message of 33 MiB', function () {
	this.timeout(60_000)
	after(removeTemp)

	it('it is refused with words, and the session goes on', async () => {
		const at = place()
		const child = spawn(process.execPath, [bin, 'acp'], {
			cwd: at.root,
			env: environment(at, { script: { steps: [{ text: 'Still here.' }] } }),
			stdio: ['pipe', 'pipe', 'inherit'],
		})
		const ended = new Promise((done) => child.on('close', done))
		const waiting = new Map<number, (message: any) => void>()
		createInterface({ input: child.stdout }).on('line', (line) => {
			const message = JSON.parse(line)
			if (message.method === undefined) waiting.get(message.id)?.(message)
		})
		let next = 0
		const ask = (method: string, params: object) => {
			const id = ++next
			child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
			return new Promise<any>((done) => waiting.set(id, done))
		}
		await ask('initialize', { protocolVersion: 1, clientCapabilities: {} })
		const { sessionId } = (await ask('session/new', { cwd: at.root, mcpServers: [] })).result
		const prompt = (text: string) => ask('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
		const refused = await prompt('x'.repeat(33 * 1024 * 1024))
		expect(refused.error).to.include({ code: -32602 })
		expect(refused.error.message).to.include('more than the 32 MiB')
		expect((await prompt('are you there?')).result).to.deep.include({ stopReason: 'end_turn' })
		child.stdin.end()
		expect(await ended).to.equal(0)
	})
})
