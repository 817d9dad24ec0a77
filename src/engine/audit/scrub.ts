// An entry made fit for the log: every text through the redactor first, then bounded. Between the gate's entry and its line.
import type { AuditEntry } from '../ports.ts'
import { clip } from '../text.ts'
import { canonical, sha256 } from './chain.ts'

/** An entry with nothing left in it that may not be written. */
export type Scrubbed = AuditEntry & { cut?: number }

const maxText = 16 << 10
const maxDepth = 12
/** Of a whole entry, in characters of its line. */
const maxEntry = 256 << 10

const secretKey = /secret|passw|pwd|passphrase|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth/i

/**
 * A copy in which each text is redacted (a value also by the name it stands under), then clipped, and what is too deep or
 * too large is replaced by its size and hash. `cut` counts the places that were shortened. Redaction comes first: a key
 * cut in half would not be known any more.
 */
export function scrubEntry(entry: AuditEntry, redact: (text: string) => string): Scrubbed {
	let cut = 0
	const text = (value: string, max = maxText): string => {
		const safe = redact(value)
		if (safe.length <= max) return safe
		cut++
		return clip(safe, max)
	}
	/** `{"password": "…"}`: neither half looks like a secret by itself. */
	const named = (name: string, value: string): string => {
		if (!secretKey.test(name) || /["\n\r]/.test(value)) return text(value)
		const head = `${name}="`
		const both = redact(`${head}${value}"`)
		return text(both.startsWith(head) && both.endsWith('"') ? both.slice(head.length, -1) : value)
	}
	const walk = (value: unknown, depth: number): unknown => {
		if (typeof value === 'string') return text(value)
		if (typeof value === 'number') return Number.isFinite(value) ? value : null
		if (typeof value === 'boolean' || value === null) return value
		if (typeof value !== 'object') return null
		if (depth > maxDepth) {
			cut++
			return '[too deep]'
		}
		if (Array.isArray(value)) return value.map((one) => walk(one, depth + 1))
		return Object.fromEntries(
			Object.entries(value)
				.filter(([, one]) => one !== undefined)
				.map(([name, one]) => [text(name, 512), typeof one === 'string' ? named(name, one) : walk(one, depth + 1)]),
		)
	}
	const safe = walk(entry, 0) as AuditEntry & Record<string, unknown>
	// The log's own members are not the caller's to set.
	for (const name of ['n', 'time', 'session', 'prev', 'hash', 'cut']) delete safe[name]
	for (const part of ['input', 'detail'] as const) {
		const json = safe[part] === undefined ? '' : canonical({ [part]: safe[part] })
		if (json.length <= maxEntry) continue
		cut++
		safe[part] = { leftOut: json.length, sha256: sha256(json) }
	}
	return cut === 0 ? safe : { ...safe, cut }
}
