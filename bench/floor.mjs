// The floor of the benches: the same exchange with a model server by the least code that does it. No agent, no checks.
import { readFileSync } from 'node:fs'
import http from 'node:http'

const [wire, base, count = '0'] = process.argv.slice(2)
const anthropic = wire === 'anthropic'
const agent = new http.Agent({ keepAlive: true })
const messages = [{ role: 'user', content: 'hello' }]

const request = () =>
	new Promise((done, failed) => {
		const body = JSON.stringify({ model: 'test', stream: true, max_tokens: 100, messages })
		const out = http.request(
			`${base}${anthropic ? '/v1/messages' : '/v1/chat/completions'}`,
			{
				agent,
				method: 'POST',
				headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
			},
			(response) => {
				response.setEncoding('utf8')
				let rest = ''
				let text = ''
				let json = ''
				let name = ''
				response.on('data', (chunk) => {
					const parts = (rest + chunk).split('\n\n')
					rest = parts.pop()
					let shown = ''
					for (const part of parts) {
						const data = part.slice(part.indexOf('data: ') + 6)
						if (data === '[DONE]') continue
						const event = JSON.parse(data)
						if (anthropic) {
							if (event.type === 'content_block_start' && event.content_block.type === 'tool_use')
								name = event.content_block.name
							if (event.type === 'content_block_delta')
								event.delta.text === undefined ? (json += event.delta.partial_json) : (shown += event.delta.text)
						} else {
							const delta = event.choices[0]?.delta ?? {}
							if (delta.content) shown += delta.content
							if (delta.tool_calls?.[0].function.name) name = delta.tool_calls[0].function.name
							if (delta.tool_calls) json += delta.tool_calls[0].function.arguments
						}
					}
					text += shown
					if (shown) process.stdout.write(shown)
				})
				response.on('end', () => done({ text, name, json }))
			},
		)
		out.on('error', failed)
		out.end(body)
	})

for (let i = 0; ; i++) {
	const { text, name, json } = await request()
	messages.push({ role: 'assistant', content: text || json })
	if (!name || i > Number(count)) break
	messages.push({ role: 'user', content: readFileSync(JSON.parse(json).path, 'utf8') })
}
agent.destroy()
