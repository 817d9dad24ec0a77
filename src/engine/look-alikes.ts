// Letters that a reader takes for Latin ones, as those. Used where a name is looked for in words from outside.

/** Letters of other scripts that look like those of Garuda's markers. */
const alike: Record<string, string> = {
	а: 'a',
	α: 'a',
	ɑ: 'a',
	с: 'c',
	ԁ: 'd',
	е: 'e',
	ε: 'e',
	ɡ: 'g',
	і: 'i',
	ı: 'i',
	ι: 'i',
	ӏ: 'l',
	м: 'm',
	п: 'n',
	о: 'o',
	ο: 'o',
	р: 'p',
	ρ: 'p',
	г: 'r',
	ѕ: 's',
	т: 't',
	τ: 't',
	υ: 'u',
	ц: 'u',
	ѡ: 'w',
	ԝ: 'w',
	ω: 'w',
	у: 'y',
	ѵ: 'v',
}

/** In lower case, without accents, widths and styles, look-alikes of other scripts as the Latin letters they look like. */
export const latinLetters = (text: string): string =>
	text
		.normalize('NFKD')
		.toLowerCase()
		.replace(/./gu, (char) => alike[char] ?? char)
