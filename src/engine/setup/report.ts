// The doctor's findings: named lines, safe to be shared, as text or JSON. Written by the checks, printed by the command.

export type CheckStatus = 'pass' | 'warn' | 'fail' | 'skip'

export interface CheckLine {
	/** Stable, for scripts: `sandbox.network`. */
	id: string
	status: CheckStatus
	detail: string
	/** What to do about it. */
	fix?: string
}

export const pass = (id: string, detail: string): CheckLine => ({ id, status: 'pass', detail })
export const skip = (id: string, detail: string): CheckLine => ({ id, status: 'skip', detail })
export const warn = (id: string, detail: string, fix?: string): CheckLine => line(id, 'warn', detail, fix)
export const fail = (id: string, detail: string, fix?: string): CheckLine => line(id, 'fail', detail, fix)
const line = (id: string, status: CheckStatus, detail: string, fix?: string): CheckLine => ({
	id,
	status,
	detail,
	...(fix ? { fix } : {}),
})

export interface Report {
	/** No line failed. */
	ok: boolean
	lines: CheckLine[]
}

export interface Private {
	home: string
	/** Values that must not be in a report: keys, passwords. */
	secrets: string[]
}

/** A report that may be pasted into an issue: no key, no home folder, no user name in a path. */
export function shareable(lines: CheckLine[], { home, secrets }: Private): Report {
	const known = secrets.filter((value) => value.length >= 8).sort((a, b) => b.length - a.length)
	const user = /^\/(?:home|Users)\/([^/]+)/.exec(home)?.[1]
	const clean = (text: string): string => {
		let safe = text
		for (const secret of known) safe = safe.replaceAll(secret, '[key]')
		safe = safe.replace(/(\/\/)[^/\s:@]+(?::[^/\s@]*)?@/g, '$1[login]@')
		if (home.length > 1) safe = safe.replaceAll(home, '~')
		return user ? safe.replaceAll(`/${user}/`, '/[user]/') : safe
	}
	const shown = lines.map((one) => ({
		...one,
		detail: clean(one.detail),
		...(one.fix === undefined ? {} : { fix: clean(one.fix) }),
	}))
	return { ok: lines.every((one) => one.status !== 'fail'), lines: shown }
}

/** One line each, what to do below it, and a count. */
export function reportText({ lines }: Report): string {
	const width = Math.max(...lines.map((one) => one.id.length))
	const count = (status: CheckStatus) => lines.filter((one) => one.status === status).length
	const out = lines.flatMap(({ id, status, detail, fix }) => [
		`${status.toUpperCase()}  ${id.padEnd(width)}  ${detail}`,
		...(fix ? [`      ${''.padEnd(width)}  → ${fix}`] : []),
	])
	const warnings = count('warn')
	out.push(
		'',
		`${count('pass')} passed, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${count('fail')} failed, ${count('skip')} skipped.`,
	)
	return `${out.join('\n')}\n`
}
