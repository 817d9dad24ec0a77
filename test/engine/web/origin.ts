// A TLS server of this machine that stands for public names, and web_fetch options that lead those names to it.
import { readFileSync } from 'node:fs'
import { createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import type { FetchOptions } from '../../../src/engine/web/fetch.ts'

const pem = (name: string) => readFileSync(new URL(`../../fixtures/web/${name}`, import.meta.url), 'utf8')
export const publicAddress = '93.184.215.14'

export interface Origin {
	options: FetchOptions
	/** `host path` of each request. */
	requests: { host: string; path: string; headers: IncomingMessage['headers'] }[]
	looked: string[]
	dialled: string[]
	/** Answers of a name, in turn; the last one stays. */
	addresses: Record<string, string[][]>
	plainPort: number
	close(): Promise<void>
}

export const startOrigin = async (
	answer: (path: string, response: ServerResponse, request: IncomingMessage) => void,
): Promise<Origin> => {
	const requests: Origin['requests'] = []
	const listener = (request: IncomingMessage, response: ServerResponse) => {
		response.on('error', () => {})
		requests.push({ host: request.headers.host ?? '', path: request.url ?? '', headers: request.headers })
		answer(request.url ?? '', response, request)
	}
	const secure = createServer({ key: pem('server.key'), cert: pem('server.pem') }, listener)
	const plain = createPlain(listener)
	for (const server of [secure, plain]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
	const port = (server: typeof secure | typeof plain) => (server.address() as AddressInfo).port
	const looked: string[] = []
	const dialled: string[] = []
	const addresses: Origin['addresses'] = {}
	return {
		requests,
		looked,
		dialled,
		addresses,
		plainPort: port(plain),
		options: {
			ca: pem('server.pem'),
			lookup: async (host) => {
				looked.push(host)
				if (host === 'localhost' || host === '127.0.0.1') return [{ address: '127.0.0.1' }]
				const turns = addresses[host] ?? [[publicAddress]]
				const now = turns.length > 1 ? turns.shift()! : turns[0]!
				return now.map((address) => ({ address }))
			},
			dial: (address, at) => {
				dialled.push(`${address}:${at}`)
				return connect(address === '127.0.0.1' ? at : port(secure), '127.0.0.1')
			},
		},
		async close() {
			for (const server of [secure, plain]) {
				server.closeAllConnections()
				await new Promise((resolve) => server.close(resolve))
			}
		},
	}
}
