// `garuda acp`: stdin and stdout become the protocol, and the process ends with them. Between the command class and the server.
import { homedir, hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { ndJsonStream } from '@agentclientprotocol/sdk'
import type { Effort, EngineOptions, Mode } from '../engine/index.ts'
import { input, maxMessage } from './input.ts'
import { createServer } from './server.ts'
import { createSignIn } from './sign-in.ts'
import type { Out, ProtocolWrite } from './stdout.ts'
import { protocolOutput } from './stdout.ts'

export interface AcpFlags {
	model?: string | undefined
	effort?: Effort | undefined
	mode?: Mode | undefined
}

/** What the command class passes in of the tour service; its own types stay on its side. */
export interface TourRoom {
	prepareTour(options: {
		root: string
		home: string
		tmpdir: string
		env: Record<string, string | undefined>
		ways?: string
	}): Promise<{
		root: string
		garudaHome: string
		client: NonNullable<NonNullable<EngineOptions['ports']>['client']>
		spec: NonNullable<NonNullable<EngineOptions['ports']>['spec']>
		remove(): Promise<void>
	}>
}

export interface RunInput {
	flags: AcpFlags
	/** Flags that stand on the command line; the others came from the environment. */
	named: ReadonlySet<string>
	version: string
	clients: NonNullable<EngineOptions['clients']>
	wrapClient?: EngineOptions['wrapClient']
	tour?(): Promise<TourRoom>
	/** Already taken; else stdout is taken here. */
	write?: ProtocolWrite
}

const oldest = [22, 20] as const

/** What stands in the way of a session in this process, in words for the person. */
export function obstacle(platform: string, node: string): string | null {
	if (platform === 'win32')
		return 'Native Windows is not supported. Use WSL: run "wsl --install", install garuda inside it, and start "wsl garuda acp" from your editor.'
	const [major = 0, minor = 0] = node.split('.').map(Number)
	if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return null
	return `Garuda needs Node ${oldest.join('.')} or newer; this is ${node}. Install a newer Node and start the editor again.`
}

/** Serves one editor and resolves with the exit code when it is gone and everything that was started has ended. */
export async function run(o: RunInput): Promise<number> {
	// An editor keeps this process for days: the space for young objects stays as it is instead of growing to 100 MB with use.
	setFlagsFromString('--semi-space-growth-factor=1')
	const write = o.write ?? protocolOutput(process.stdout as unknown as Out, process.stderr as unknown as Out)
	const env = { ...process.env }
	const home = env.HOME || homedir()
	const cwd = process.cwd()
	const garudaHome = env.GARUDA_HOME ? resolve(cwd, env.GARUDA_HOME) : join(home, '.garuda')
	const signIn = createSignIn(env, garudaHome)
	// A script stands in for a model only where no model was named.
	const scripted = env.GARUDA_MODEL_SCRIPT && o.clients.scripted ? 'scripted' : undefined
	const model = o.named.has('model') ? o.flags.model : (scripted ?? o.flags.model)
	const server = createServer({
		version: o.version,
		cwd,
		signIn,
		obstacle: obstacle(process.platform, process.versions.node),
		terminalSetup: process.platform !== 'win32',
		engine: () => ({
			home,
			...(env.GARUDA_HOME ? { garudaHome } : {}),
			env: signIn.env(),
			...(model ? { model } : {}),
			...(o.flags.effort ? { effort: o.flags.effort } : {}),
			...(o.flags.mode ? { mode: o.flags.mode } : {}),
			version: o.version,
			platform: process.platform,
			hostname: hostname(),
			...(process.getuid ? { uid: process.getuid() } : {}),
			clients: o.clients,
			...(o.wrapClient ? { wrapClient: o.wrapClient } : {}),
		}),
		...(model === 'tour' && o.tour ? { tour: (root: string) => tourFor(root, o.tour!, home, env) } : {}),
	})

	const output = new WritableStream<Uint8Array>({ write: (chunk) => write(chunk) })
	const bytes = Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>
	const refuse = (id: string | number | null, size: number) => {
		const message = `Invalid params: this message has ${size.toLocaleString('en')} bytes, more than the ${maxMessage >> 20} MiB that are read at once, and was left out. Send less at a time.`
		write(Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message } })}\n`))
	}
	const messages = ndJsonStream(output, bytes.pipeThrough(input(refuse)), { maxMessageBytes: maxMessage + 1 })
	const connection = server.app.connect(messages)
	const why = await ended(connection.closed)
	connection.close()
	process.stdin.destroy()
	// Whatever hangs: the editor is gone, so this process goes too.
	await Promise.race([server.close(), new Promise((done) => setTimeout(done, 5000).unref())])
	return why
}

/** 0 when the editor closed stdin or is gone; 128 and the number for a signal. */
function ended(closed: Promise<void>): Promise<number> {
	return new Promise((done) => {
		void closed.then(() => done(0))
		for (const [name, number] of [
			['SIGTERM', 15],
			['SIGINT', 2],
			['SIGHUP', 1],
		] as const)
			process.once(name, () => done(128 + number))
		// Another process may hold stdin open after the editor has died: then this one has a new parent.
		const parent = process.ppid
		setInterval(() => process.ppid !== parent && done(0), 1000).unref()
	})
}

/** In an editor the tour was chosen in its settings, so the way to a model ends there too. */
export const editorWays = `Three ways to get a model, each for a new thread here:
  1. garuda setup, in a terminal; then take the tour out of this editor's entry for Garuda
  2. ANTHROPIC_API_KEY or OPENAI_API_KEY in the "env" of the entry
  3. "args": ["acp", "-m", "ollama/<model>"] in the entry, for a server on this machine`

async function tourFor(root: string, room: () => Promise<TourRoom>, home: string, env: NodeJS.ProcessEnv) {
	const [{ prepareTour }, { tmpdir }] = await Promise.all([room(), import('node:os')])
	const tour = await prepareTour({ root, home, tmpdir: tmpdir(), env, ways: editorWays })
	return {
		options: { root: tour.root, garudaHome: tour.garudaHome, model: 'tour', clients: { tour: async () => tour } },
		remove: () => tour.remove(),
	}
}
