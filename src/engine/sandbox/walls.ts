// Which wall of the sandbox stopped a failed command, as far as its output shows: what the one question after it names.

import { oneLine } from '../text.ts'
import type { Wall } from '../types.ts'

const network = [
	/could not resolve (?:host|hostname|proxy)|couldn't resolve host|temporary failure in name resolution|name or service not known|nodename nor servname|no address associated with hostname|unable to resolve (?:host|address)|failed to lookup address|\bdns error\b|no such host/i,
	/\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH|EHOSTUNREACH)\b|network is unreachable|no route to host/i,
	/failed to establish a new connection|unknownhostexception|lookup \S+(?: on \S+)?: (?:dial|no such|temporary|server misbehaving)|dial tcp\b.*(?:connect|lookup)/i,
	// The sandbox has a loopback of its own, without the host's services; and none of its daemons' sockets.
	/(?:127\.0\.0\.1|\blocalhost\b|\[?::1\]?).{0,80}(?:refused|ECONNREFUSED)|ECONNREFUSED (?:127\.0\.0\.1|::1)|\bconnect to \S+ port \d+.{0,60}refused/i,
	/cannot connect to the docker daemon|dial unix \S+|(?:could not|error) connect(?:ing)? to (?:the )?(?:agent|authentication agent)/i,
]
const write = [
	/read-only file ?system|\bEROFS\b|errno 30\b|os error 30\b/i,
	/(?:device or resource busy|\bEBUSY\b|os error 16\b)/i,
]
const process = [
	/\b(?:ptrace|PTRACE_\w+|unshare|clone|setns|mount|pivot_root|bwrap|nsenter|keyctl|perf_event_open|io_uring\w*)\b.{0,120}(?:operation not permitted|permission denied|function not implemented|EPERM)/i,
	/no new privileges|must be setuid root|effective uid is not 0|sudo: .{0,80}(?:root|nosuid)|resource temporarily unavailable.*|fork: retry|cannot fork|\bEAGAIN\b.*(?:fork|spawn|thread)|file size limit exceeded|bad system call/i,
]
const secrets = [
	/unable to locate credentials|could not find default credentials|gh auth login|no (?:valid )?credential|could not read (?:username|password)|ENEEDAUTH|E401\b|host key verification failed|permission denied \(publickey/i,
]

/** Only the tail of a long output is read: what stopped a command stands near its end. */
const lookAt = 20_000

/**
 * The wall and the line that shows it, or undefined when nothing points to the sandbox. `masked`: hidden paths, so that
 * "no such file" about one of them is known for what it is. A wall is named, never an attempt to get round it.
 */
export const findWall = (output: string, masked: string[]): { wall: Wall; detail: string } | undefined => {
	const lines = output
		.slice(-lookAt)
		.split(/[\r\n]+/)
		.map((line) => line.slice(0, 2_000))
	const match = (wall: Wall, patterns: RegExp[]) => {
		const line = lines.findLast((each) => patterns.some((pattern) => pattern.test(each)))
		return line === undefined ? undefined : { wall, detail: oneLine(line, 300) }
	}
	const hidden = () => {
		const line = lines.findLast(
			(each) =>
				/no such file|not found|permission denied|cannot open|ENOENT|EACCES/i.test(each) &&
				masked.some((path) => each.includes(path)),
		)
		return line === undefined ? undefined : { wall: 'read' as const, detail: oneLine(line, 300) }
	}
	// The network first: package tools that lack it also complain of the logs they could not write.
	return (
		match('network', network) ??
		match('write', write) ??
		hidden() ??
		match('process', process) ??
		match('read', secrets)
	)
}
