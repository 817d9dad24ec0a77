// The floor of the benches: the same exchange with a model server by the least code that does it. No agent, no checks.
import { readFileSync } from 'node:fs'
import http from 'node:http'

const [wire, base, count = '0'] = process.argv.slice(2)
const path = wire === 'anthropic' ? '/v1/messages' : '/v1/chat/completions'
const read = wire === 'anthropic' ? readAnthropic : readOpenai
const agent = new http.Agent({ keepAlive: true })
const messages = [{ role: 'user', content: 'hello' }]

for (let i = 0; ; i++) {
	const { text, name, json } = await request()
	messages.push({ role: 'assistant', content: text || json })
	if (!name || i > Number(count)) break
	messages.push({ role: 'user', content: readFileSync(JSON.parse(json).path, 'utf8') })
}
agent.destroy()

function request() {
	const body = JSON.stringify({ model: 'test', stream: true, max_tokens: 100, messages })
	const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
	return new Promise((done, failed) => {
		const out = http.request(base + path, { agent, method: 'POST', headers }, (response) => {
			const reply = { text: '', name: '', json: '' }
			let rest = ''
			response.setEncoding('utf8')
			response.on('data', (chunk) => {
				const parts = (rest + chunk).split('\n\n')
				rest = parts.pop()
				const before = reply.text.length
				for (const part of parts) {
					const data = part.slice(part.indexOf('data: ') + 6)
					if (data !== '[DONE]') read(JSON.parse(data), reply)
				}
				if (reply.text.length > before) process.stdout.write(reply.text.slice(before))
			})
			response.on('end', () => done(reply))
		})
		out.on('error', failed)
		out.end(body)
	})
}

function readAnthropic(event, reply) {
	if (event.type === 'content_block_start' && event.content_block.type === 'tool_use')
		reply.name = event.content_block.name
	if (event.type !== 'content_block_delta') return
	if (event.delta.text === undefined) reply.json += event.delta.partial_json
	else reply.text += event.delta.text
}

function readOpenai(event, reply) {
	const delta = event.choices[0]?.delta
	if (delta?.content) reply.text += delta.content
	const call = delta?.tool_calls?.[0]?.function
	if (!call) return
	if (call.name) reply.name = call.name
	reply.json += call.arguments
}
