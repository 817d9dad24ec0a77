// A page's words without what hides in them: invisible characters, and tags that only look like Garuda's own. Used by web_fetch and web_search.

import { latinLetters } from '../look-alikes.ts'

/**
 * Characters that show nothing and carry text past a reader: zero-width and joining ones that no script needs, directions,
 * tags, and variation selectors where there are more than a letter can use.
 */
const invisible =
	/[\u00ad\u061c\u115f\u1160\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|\u034f|[\u17b4\u17b5]|[\u180b-\u180f]|[\ufe00-\ufe0f]{2,}|[\u200c\u200d]{2,}/gu

const names = /^(?:garuda|systemreminder|toolresult|webresult|mcpresult)/

// An opening bracket of some kind, what may stand before a name, and the name's first letters with what may stand between.
const tag = /([<＜‹⟨﹤〈《❮❬≺⧼⟪«])([^\p{L}\p{N}<>\n]{0,12})((?:\p{L}[^\p{L}\p{N}\s<>]{0,4}){6,20})/gu

/** For text that is read and not matched again: what it changes would not be found in the source. */
export const plainWords = (text: string): string =>
	text
		.replace(/[\u2028\u2029]/g, '\n')
		.replace(invisible, '')
		.replace(tag, (whole, _open: string, between: string, name: string) => {
			const letters = latinLetters(name).replace(/[^a-z]/g, '')
			return names.test(letters) ? `&lt;${between}${name}` : whole
		})
