// A name to a connection with nothing left to chance between: one lookup, every address judged, the judged address dialled.
import { lookup as systemLookup } from 'node:dns/promises'
import { connect, type Socket } from 'node:net'
import { isLoopback, isPublic } from './addresses.ts'
import { HttpError, isHttpError } from './http-error.ts'
import { throughProxy } from './upstream.ts'

/** All addresses of a name. Replaceable for tests; the default is the system's own resolver. */
export type Lookup = (host: string) => Promise<readonly { address: string }[]>
/** A socket to an address literal. */
export type Dial = (address: string, port: number) => Socket

export const lookupAll: Lookup = (host) => systemLookup(host, { all: true, verbatim: true })
export const dialAddress: Dial = (address, port) => connect({ host: address, port })

export interface Reach {
	lookup?: Lookup | undefined
	dial?: Dial | undefined
	/** Milliseconds for the lookup, and for each of the first three addresses. Default 10,000. */
	timeoutMs?: number | undefined
	signal?: AbortSignal | undefined
	/** Only addresses of this machine instead of only public ones; for a URL of localhost that the user opened. */
	loopback?: boolean | undefined
	/** The proxy of the user's network that leads to a host, from Garuda's own environment. */
	upstream?: ((host: string, port: number) => URL | null) | undefined
}

/**
 * The addresses of `host`, all of them judged. Throws HttpError `refused` when one of them is not public (a name that points
 * inside is not dialled at its other addresses either), `dns` when there are none.
 */
export const judgedAddresses = async (host: string, reach: Reach = {}): Promise<string[]> => {
	const { lookup = lookupAll, timeoutMs = 10_000, signal, loopback } = reach
	let found: readonly { address: string }[]
	try {
		found = await within(lookup(host), timeoutMs, signal)
	} catch (error) {
		if (signal?.aborted) throw new HttpError('aborted', 'The request was cancelled.')
		throw new HttpError('dns', `The name ${host} was not found.`, { cause: error })
	}
	if (found.length === 0) throw new HttpError('dns', `The name ${host} has no address.`)
	const allowed = loopback ? isLoopback : isPublic
	const wrong = found.find(({ address }) => !allowed(address))
	if (wrong)
		throw new HttpError(
			'refused',
			`${host} leads to ${wrong.address}, which is ${loopback ? 'not this machine' : 'not an address of the public internet'}.`,
		)
	return found.map(({ address }) => address)
}

/**
 * A connected socket to `host`, at an address that was judged in the same step; there is no second lookup. Behind a proxy of
 * the user's network the name goes to that proxy, which looks it up again: it is judged here where it is known here, and a name
 * that only the proxy knows is the proxy's to judge. Throws HttpError.
 */
export const dialChecked = async (host: string, port: number, reach: Reach = {}): Promise<Socket> => {
	const proxy = reach.loopback ? null : (reach.upstream?.(host, port) ?? null)
	if (!proxy) return dialAny(host, await judgedAddresses(host, reach), port, reach)
	try {
		await judgedAddresses(host, reach)
	} catch (error) {
		if (!isHttpError(error) || error.code !== 'dns') throw error
	}
	const { lookup = lookupAll, timeoutMs = 10_000 } = reach
	const connectTo = async (name: string, at: number) =>
		dialAny(
			name,
			(await lookup(name)).map(({ address }) => address),
			at,
			reach,
		)
	return throughProxy(proxy, host, port, connectTo, timeoutMs)
}

/** The first of the judged addresses that answers. */
export const dialAny = async (host: string, addresses: string[], port: number, reach: Reach = {}): Promise<Socket> => {
	const { dial = dialAddress, timeoutMs = 10_000, signal } = reach
	let last: unknown
	// IPv4 first: where IPv6 leads nowhere, each try would cost the whole time limit.
	for (const address of addresses.toSorted((a, b) => Number(a.includes(':')) - Number(b.includes(':'))).slice(0, 3)) {
		if (signal?.aborted) throw new HttpError('aborted', 'The request was cancelled.')
		const socket = dial(address, port)
		try {
			await within(
				new Promise<void>((resolve, reject) => {
					socket.once('connect', resolve)
					socket.once('error', reject)
				}),
				timeoutMs,
				signal,
			)
			return socket
		} catch (error) {
			last = error
			socket.on('error', () => {})
			socket.destroy()
		}
	}
	if (signal?.aborted) throw new HttpError('aborted', 'The request was cancelled.')
	throw new HttpError('network', `${host} could not be connected.`, { cause: last })
}

const within = async <T>(work: Promise<T>, ms: number, signal?: AbortSignal): Promise<T> => {
	const stop = new AbortController()
	try {
		return await new Promise<T>((resolve, reject) => {
			const timer = setTimeout(() => reject(new Error('timeout')), ms)
			stop.signal.addEventListener('abort', () => clearTimeout(timer))
			if (signal?.aborted) reject(new Error('aborted'))
			signal?.addEventListener('abort', () => reject(new Error('aborted')), { once: true, signal: stop.signal })
			work.then(resolve, reject)
		})
	} finally {
		stop.abort()
	}
}
