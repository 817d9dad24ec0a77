// The alternatives of a regular expression, for the negative control: each name that a pattern lists is a rule of its own.

export interface Alternative {
	/** In the literal's text, with the bar that goes too. */
	from: number
	to: number
	text: string
}

/** Alternatives of two or more that hold a name of at least two letters or an option; of a literal with its slashes and flags. */
export const alternatives = (literal: string): Alternative[] => {
	const end = literal.lastIndexOf('/')
	const found: Alternative[] = []
	/** Open groups: where each alternative begins. */
	const open: number[][] = [[1]]
	const close = (to: number) => {
		const starts = open.pop()!
		if (starts.length < 2) return
		starts.forEach((from, index) => {
			const last = index === starts.length - 1
			const stop = last ? to : starts[index + 1]! - 1
			const text = literal.slice(from, stop)
			if (!/[A-Za-z]{2}|-[A-Za-z]/.test(text)) return
			found.push(last ? { from: from - 1, to: stop, text } : { from, to: stop + 1, text })
		})
	}
	let set = false
	for (let at = 1; at < end; at++) {
		const char = literal[at]
		if (char === '\\') at++
		else if (set) set = char !== ']'
		else if (char === '[') set = true
		else if (char === '(') {
			const head = /^\((?:\?(?:[:=!]|<[=!]|<\w+>))?/.exec(literal.slice(at))![0]
			at += head.length - 1
			open.push([at + 1])
		} else if (char === ')') close(at)
		else if (char === '|') open.at(-1)!.push(at + 1)
	}
	close(end)
	return found
}
