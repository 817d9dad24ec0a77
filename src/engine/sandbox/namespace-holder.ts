// A session's network namespace: empty but for a loopback on which Garuda's proxy listens. Made once, before the first command that may use it.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Server } from 'node:net'
import type { Readable } from 'node:stream'
import { messageOf } from '../errors.ts'

/** Where the proxy listens, inside the namespace only. */
export const proxyPort = 3128

export interface NetworkNamespace {
	/** The listening socket inside the namespace, as a server of this process. */
	server: Server
	/** What goes before a program's path so that it starts in the namespace. */
	prefix: string[]
	/** The namespace ends with the last process in it. Idempotent. */
	close(): void
}

// Runs inside the new namespace. It must not keep the socket after the hand-over: it would take connections away.
const helper = `
const server = require('node:net').createServer()
server.listen(${proxyPort}, '127.0.0.1', 64, () => process.send('listening', server, () => server.close()))
process.on('disconnect', () => process.exit(0))
setInterval(() => {}, 1e9)
`

const readyMs = 5_000

/**
 * Opens the namespace. A helper process listens inside and hands its socket over Node's own channel, so that no Unix socket
 * has to be reachable in the sandbox; then it ends. The namespaces live on by two descriptors of this process, so there is no
 * process to kill and no process number that another program could get. Rejects with an Error when it cannot be had.
 */
export const openNamespace = async (programs: { bwrap: string; nsenter: string }): Promise<NetworkNamespace> => {
	const child = spawn(
		programs.bwrap,
		[
			...['--unshare-user', '--unshare-net', '--cap-drop', 'ALL', '--die-with-parent'],
			// Not --dev: for an ordinary user bubblewrap would make a second user namespace for it, and joining would fail.
			...['--dev-bind', '/', '/', '--json-status-fd', '4', '--', process.execPath, '-e', helper],
		],
		{ env: {}, cwd: '/', stdio: ['ignore', 'ignore', 'pipe', 'ipc', 'pipe'] },
	)
	const descriptors: number[] = []
	let server: Server | undefined
	try {
		let status = ''
		let said = ''
		child.stderr!.on('data', (bytes: Buffer) => {
			said = (said + bytes.toString('latin1')).slice(0, 500)
		})
		const pid = await new Promise<number>((resolve, reject) => {
			const timer = setTimeout(() => reject(new Error('it was not ready in time')), readyMs)
			const check = () => {
				const first = /"child-pid": (\d+)\D/.exec(status)?.[1]
				if (first === undefined || !server) return
				clearTimeout(timer)
				resolve(Number(first))
			}
			const pipe = child.stdio[4] as Readable
			pipe.on('error', () => {})
			pipe.on('data', (bytes: Buffer) => {
				if (status.length < 4_096) status += bytes.toString('latin1')
				check()
			})
			child.on('message', (_, handle) => {
				server = handle as Server
				check()
			})
			child.once('error', (error) => reject(error))
			child.once('exit', (code) => reject(new Error(said.trim() || `its helper ended with ${code}`)))
		})
		// The helper lives until it is let go below: its number is its own.
		for (const kind of ['user', 'net']) descriptors.push(openSync(`/proc/${pid}/ns/${kind}`, 'r'))
	} catch (error) {
		for (const fd of descriptors) closeSync(fd)
		server?.close()
		throw new Error(`a network namespace could not be made: ${messageOf(error)}`)
	} finally {
		if (child.connected) child.disconnect()
		child.unref()
		for (const stream of [child.stderr, child.stdio[4]]) stream?.destroy()
		if (child.exitCode === null) child.kill('SIGKILL')
	}
	const listening = server!
	// Half-closed tunnels are ordinary; each side ends by itself.
	;(listening as Server & { allowHalfOpen: boolean }).allowHalfOpen = true
	listening.unref()
	const [user, net] = descriptors as [number, number]
	let open = true
	return {
		server: listening,
		// nsenter closes what it opens; a descriptor handed to the child would be there for the command as well.
		prefix: [
			programs.nsenter,
			`--user=/proc/${process.pid}/fd/${user}`,
			`--net=/proc/${process.pid}/fd/${net}`,
			'--preserve-credentials',
			'--',
		],
		close() {
			if (!open) return
			open = false
			listening.close()
			closeSync(user)
			closeSync(net)
		},
	}
}
