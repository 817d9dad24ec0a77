// Permission bits of a snapshot's files, which git's trees do not hold: a small list beside the files, in the tree itself.
import type { FileState } from './snapshot-files.ts'

/** Most files have the usual bits of their project; the others are named. */
export interface Bits {
	/** Of a file without the execute right; 0: nothing was seen yet. */
	usual: number
	odd: Map<string, number>
}

/** The entry in the index and the tree; a name that no file of a project is covered under. */
export const bitsName = '.bits.garuda-tmp'

/** What a tree without an entry means. */
const plain = 0o644

export const noBits = (usual = 0): Bits => ({ usual, odd: new Map() })
export const copyBits = ({ usual, odd }: Bits): Bits => ({ usual, odd: new Map(odd) })

const withExecute = (bits: number): number => bits | ((bits & 0o444) >> 2)

/** The bits of a file; undefined for a link. */
export const bitsOf = (bits: Bits, path: string, mode: FileState['mode']): number | undefined => {
	if (mode === '120000') return undefined
	const usual = bits.usual || plain
	return bits.odd.get(path) ?? (mode === '100755' ? withExecute(usual) : usual)
}

/** Takes in what was seen of files. The first ones decide what is usual. */
export function noteBits(bits: Bits, seen: readonly (readonly [path: string, bits: number])[]): void {
	if (bits.usual === 0 && seen.length > 0) {
		const counts = new Map<number, number>()
		for (const [, each] of seen) if (!(each & 0o100)) counts.set(each, (counts.get(each) ?? 0) + 1)
		bits.usual = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] || plain
	}
	for (const [path, each] of seen)
		if (each === (each & 0o100 ? withExecute(bits.usual) : bits.usual)) bits.odd.delete(path)
		else bits.odd.set(path, each)
}

/** Null where there is nothing to say. The same bits are the same text. */
export function encodeBits({ usual, odd }: Bits): string | null {
	if (odd.size === 0 && (usual === 0 || usual === plain)) return null
	return JSON.stringify([usual || plain, ...[...odd].sort(([a], [b]) => (a < b ? -1 : 1)).flat()])
}

export function decodeBits(text: string): Bits {
	if (text === '') return noBits(plain)
	const [usual, ...rest] = JSON.parse(text) as [number, ...(string | number)[]]
	const bits = noBits(usual)
	for (let i = 0; i + 1 < rest.length; i += 2) bits.odd.set(rest[i] as string, rest[i + 1] as number)
	return bits
}
