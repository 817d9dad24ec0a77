// Words or data: what of an address or a search query looks like something that is being carried out. Used by web_fetch and web_search.

// Also es2015, utf8, sha256.
const word = /^(?:[A-Z]?[a-z]{1,19}|[A-Z]{1,8}|\d{1,4}|[a-z]{1,8}\d{1,4})$/

/**
 * Whether a run of letters, digits and `+/=_-` is more likely encoded data than names: hex, digits, or mixed in a way that
 * words joined by hyphens or camelCase are not.
 */
export const looksEncoded = (run: string): boolean => {
	if (/^[0-9a-f]+$/i.test(run)) return true
	const parts = run.split(/[-_/+=]+|(?<=[a-z])(?=[A-Z])/).filter((part) => part !== '')
	if (parts.every((part) => word.test(part)) && run.length / parts.length >= 3.5) return false
	return true
}

/** The first run of at least `length` characters that looks encoded, or null. */
export const encodedRun = (text: string, length: number): string | null =>
	(text.match(/[A-Za-z0-9+/=_-]+/g) ?? []).find((run) => run.length >= length && looksEncoded(run)) ?? null

/** Characters in the runs of eight and more that look encoded: data that is carried out in pieces. */
export const encodedLength = (text: string): number =>
	(text.match(/[A-Za-z0-9+/_-]{8,}={0,2}/g) ?? []).reduce((sum, run) => sum + (looksEncoded(run) ? run.length : 0), 0)

/** A text as it was before it was coded for an address, as far as that can be told: twice, and with spaces for `+`. */
export const decodedForms = (text: string): string[] => {
	const forms = [text]
	for (let at = 0; at < 3; at++) {
		const form = forms[at]!
		const next = form.replace(/(?:%[0-9a-f]{2})+/gi, (code) => {
			try {
				return decodeURIComponent(code)
			} catch {
				return code
			}
		})
		if (next === form) break
		forms.push(next)
	}
	return [...forms, ...forms.map((form) => form.replaceAll('+', ' '))]
}
