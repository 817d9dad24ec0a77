// What a terminal of some rows and columns shows after some bytes, and what scrolled off it: enough for what Garuda sends.

/** The lines above the screen and on it, without trailing blanks. Throws at a sequence that it does not know. */
export function screen(text: string, rows = 24, columns = 100): string[] {
	const lines: string[][] = [[]]
	let row = 0
	let column = 0
	let wraps = true
	/** The first line of the screen. */
	const top = () => Math.max(0, lines.length - rows)
	const sequence = /^\u001b(?:\[([0-?]*)([@-~])|\][^\u0007]*\u0007|[=>78])/
	for (let at = 0; at < text.length; ) {
		const char = String.fromCodePoint(text.codePointAt(at)!)
		if (char === '\u001b') {
			const found = sequence.exec(text.slice(at, at + 200))
			if (!found) throw new Error(`an unknown sequence: ${JSON.stringify(text.slice(at, at + 20))}`)
			at += found[0].length
			const [, given = '', name] = found
			const count = Math.max(1, Number.parseInt(given, 10) || 1)
			if (name === 'A') row = Math.max(top(), row - count)
			else if (name === 'B') row = Math.min(lines.length - 1, row + count)
			else if (name === 'C') column += count
			else if (name === 'D') column = Math.max(0, column - count)
			else if (name === 'G') column = count - 1
			else if (name === 'K') lines[row]!.splice(given === '2' ? 0 : column)
			else if (name === 'J') {
				lines[row]!.splice(column)
				for (let below = row + 1; below < lines.length; below++) lines[below] = []
			} else if (given === '?7') wraps = name === 'h'
			else if (name !== undefined && !'mhl'.includes(name)) throw new Error(`an unknown sequence: ${found[0]}`)
			continue
		}
		at += char.length
		if (char === '\n') {
			row++
			column = 0
			if (row === lines.length) lines.push([])
		} else if (char === '\r') column = 0
		else if (char === '\b') column = Math.max(0, column - 1)
		else {
			if (column >= columns) {
				if (wraps) {
					row++
					column = 0
					if (row === lines.length) lines.push([])
				} else column = columns - 1
			}
			const line = lines[row]!
			while (line.length < column) line.push(' ')
			line[column++] = char
		}
	}
	return lines.map((line) => line.join('').trimEnd())
}
