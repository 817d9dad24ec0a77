// Model servers on this machine, found with no question: only their list of models is asked for. Used when no model is set.
import { localPlaces } from '../config/local-presets.ts'
import type { Http } from '../net/http.ts'

/** Where to look, and under which name what answers there is known. */
export interface LocalPlace {
	/** The provider's name where it has one: `ollama`. */
	provider?: string
	name: string
	/** Base URL with /v1. */
	url: string
}

export interface LocalServer {
	provider?: string
	name: string
	/** Base URL with /v1. */
	url: string
	models: string[]
}

/**
 * Those that answer `GET /v1/models` in `limitMs` with a list. No redirects, no key, at most 64 kB read. Whoever owns the
 * port may answer, so a found server is used only after the user said yes, or named it.
 */
export async function localServers(
	http: Http,
	signal?: AbortSignal,
	places: readonly LocalPlace[] = localPlaces({}),
	limitMs = 400,
): Promise<LocalServer[]> {
	const found = await Promise.all(places.map((one) => probe(http, one, limitMs, signal)))
	return found.filter((one) => one !== null)
}

async function probe(
	http: Http,
	{ provider, name, url }: LocalPlace,
	limitMs: number,
	signal?: AbortSignal,
): Promise<LocalServer | null> {
	const limit = AbortSignal.timeout(limitMs)
	try {
		const response = await http.request({
			url: `${url}/models`,
			signal: signal ? AbortSignal.any([signal, limit]) : limit,
			headerTimeoutMs: limitMs,
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
		return { ...(provider ? { provider } : {}), name, url, models: models.slice(0, 50) }
	} catch {
		// Nothing there, or nothing that speaks this: both mean "not found" here.
		return null
	}
}
