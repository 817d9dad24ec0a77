// Model servers on this machine, found with no question: only their list of models is asked for. Used when no model is set.
import type { Http } from '../net/http.ts'

/** Ollama, LM Studio, llama.cpp, its router, vLLM. */
export const localPorts = [
	{ name: 'Ollama', port: 11434 },
	{ name: 'LM Studio', port: 1234 },
	{ name: 'llama.cpp', port: 8080 },
	{ name: 'llama.cpp router', port: 9931 },
	{ name: 'vLLM', port: 8000 },
] as const

export interface LocalServer {
	name: string
	/** Base URL with /v1. */
	url: string
	models: string[]
}

/**
 * Those that answer `GET /v1/models` in 400 ms with a list. No redirects, no key, at most 64 kB read. Whoever owns the
 * port may answer, so a found server is used only after the user said yes.
 */
export async function localServers(
	http: Http,
	signal?: AbortSignal,
	ports: readonly { name: string; port: number }[] = localPorts,
): Promise<LocalServer[]> {
	const found = await Promise.all(ports.map((one) => probe(http, one, signal)))
	return found.filter((one) => one !== null)
}

async function probe(
	http: Http,
	{ name, port }: { name: string; port: number },
	signal?: AbortSignal,
): Promise<LocalServer | null> {
	const url = `http://127.0.0.1:${port}/v1`
	const limit = AbortSignal.timeout(400)
	try {
		const response = await http.request({
			url: `${url}/models`,
			signal: signal ? AbortSignal.any([signal, limit]) : limit,
			headerTimeoutMs: 400,
		})
		if (response.status !== 200) return null
		const body: unknown = JSON.parse(await response.text(65_536))
		const data = typeof body === 'object' && body !== null && 'data' in body ? body.data : null
		if (!Array.isArray(data)) return null
		const models = data.flatMap((one: unknown) =>
			typeof one === 'object' &&
			one !== null &&
			'id' in one &&
			typeof one.id === 'string' &&
			/^[\w.:@+/~-]{1,200}$/.test(one.id)
				? [one.id]
				: [],
		)
		return { name, url, models: models.slice(0, 50) }
	} catch {
		// Nothing there, or nothing that speaks this: both mean "not found" here.
		return null
	}
}
