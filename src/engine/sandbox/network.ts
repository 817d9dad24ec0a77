// The network of a session's commands: none, or the way through Garuda's proxy to the hosts of the user's list. Called by the executor.
import { randomBytes } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { messageOf } from '../errors.ts'
import type { Dial, Lookup } from '../net/checked-dial.ts'
import type { RunSpec } from '../ports.ts'
import { openNamespace, proxyPort } from './namespace-holder.ts'
import { createNetworkProxy, type NetworkProxy, type ProxyClient, type ProxyLimits } from './network-proxy.ts'

export interface NetworkOptions {
	/** From `expandHosts`. Empty: no network at all. */
	hosts: string[]
	/** What the user's rules say of a host; `deny` beats the list, `ask` asks although it is listed. */
	rule?: (host: string, port: number) => 'deny' | 'ask' | undefined
	/** Garuda's own way out where there is only a proxy (`upstreamProxy` of the environment). */
	upstream?: (host: string, port: number) => URL | null
	/** For tests: how names are resolved and judged addresses dialled. */
	lookup?: Lookup
	dial?: Dial
	limits?: ProxyLimits
}

/** One command that has joined. */
export interface Joined {
	/** Before the sandbox's program; empty where the sandbox itself opens the way (macOS). */
	prefix: string[]
	env: Record<string, string>
	/** The proxy's port, for a sandbox that must let it through. */
	port: number
	client: ProxyClient
}

export interface SessionNetwork {
	/** Makes the network at the first call. Never rejects: where there is none, `reason` says why, and the command runs without. */
	join(spec: Pick<RunSpec, 'reachHost'>): Promise<Joined | { reason: string }>
	close(): void
}

/**
 * What a command's tools read to find the proxy. This machine's names stay direct: they mean the sandbox's own loopback, where
 * a test's server listens.
 */
export const proxyEnvironment = (url: string): Record<string, string> => {
	const { hostname, port } = new URL(url)
	const env: Record<string, string> = {}
	for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']) env[name] = env[name.toLowerCase()] = url
	env.NO_PROXY = env.no_proxy = 'localhost,127.0.0.1,::1'
	// Tools that do not read the above: Node's own fetch, Yarn, Maven and Gradle.
	env.NODE_USE_ENV_PROXY = '1'
	env.YARN_HTTP_PROXY = env.YARN_HTTPS_PROXY = url
	const java = ['http', 'https'].map((kind) => `-D${kind}.proxyHost=${hostname} -D${kind}.proxyPort=${port}`).join(' ')
	env.MAVEN_OPTS = env.GRADLE_OPTS = java
	return env
}

type Way = { prefix: string[]; env: Record<string, string>; port: number; end(): void }

const createNetwork = (
	options: NetworkOptions,
	token: string | undefined,
	open: (proxy: NetworkProxy) => Promise<Way>,
): SessionNetwork => {
	const proxy = createNetworkProxy({ ...options, token })
	let way: Promise<Way> | undefined
	let closed = false
	return {
		async join({ reachHost }) {
			const client = proxy.begin(reachHost && ((host, port) => reachHost(host, port)))
			try {
				way ??= open(proxy)
				const { prefix, env, port } = await way
				if (closed) throw new Error('the session is closed')
				return { prefix, env, port, client }
			} catch (error) {
				client.end()
				// The next command tries again.
				way = undefined
				return { reason: messageOf(error) }
			}
		},
		close() {
			closed = true
			proxy.close()
			way?.then((one) => one.end()).catch(() => {})
		},
	}
}

/** On Linux: a namespace of the session's own in which nothing listens but the proxy. */
export const namespaceNetwork = (
	options: NetworkOptions,
	programs: { bwrap: string; nsenter: string },
): SessionNetwork =>
	createNetwork(options, undefined, async (proxy) => {
		const namespace = await openNamespace(programs)
		proxy.serve(namespace.server)
		return {
			prefix: namespace.prefix,
			env: proxyEnvironment(`http://127.0.0.1:${proxyPort}`),
			port: proxyPort,
			end: () => namespace.close(),
		}
	})

/** On macOS: a port of this machine's loopback, which Seatbelt opens for the command; a word in the address keeps others out. */
export const loopbackNetwork = (options: NetworkOptions): SessionNetwork => {
	const token = randomBytes(18).toString('hex')
	return createNetwork(options, token, async (proxy) => {
		const server = createServer({ allowHalfOpen: true })
		await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
		server.unref()
		proxy.serve(server)
		const { port } = server.address() as AddressInfo
		return {
			prefix: [],
			env: proxyEnvironment(`http://garuda:${token}@127.0.0.1:${port}`),
			port,
			end: () => server.close(),
		}
	})
}
