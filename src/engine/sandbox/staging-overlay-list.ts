// What a staged command changed, from an overlay's upper folder: the same list as a copy gives (staging-list.ts), from the
// changes alone. What is not understood, or changed underneath meanwhile, makes the whole of it void.
import { basename, dirname, join } from 'node:path'
import { codeOf, messageOf } from '../errors.ts'
import { type CopyLimits, type Entry, look } from './staging-copy.ts'
import {
	closed,
	closedWhy,
	forbidden,
	namesIn,
	type Protected,
	type Refused,
	readLink,
	type StagedChange,
	type StagedList,
	sameBytes,
} from './staging-list.ts'
import type { OverlayStage } from './staging-overlay.ts'

/** Questions to the disk at once. */
const together = 16

const meanwhile = 'it changed in the project while the command ran: nothing of this command is applied, run it again'
const strange = (what: string) => `the overlay shows ${what}: nothing of this command is applied`

const folderOf = (path: string): string => (dirname(path) === '.' ? '' : dirname(path))

/** Nothing of the command can be applied, and why. */
class Void extends Error {
	readonly path: string
	constructor(path: string, why: string) {
		super(why)
		this.path = path
	}
}

/**
 * Lists what `stage` holds. `hidden`: real paths that commands do not see. A void list has no changes and names one path with
 * the reason. Links are never followed.
 */
export const listOverlay = async (
	stage: OverlayStage,
	isProtected: Protected,
	hidden: ReadonlySet<string>,
	limits: CopyLimits,
): Promise<StagedList> => {
	try {
		const lost = stage.lostTrack()
		if (lost !== undefined) throw new Void('.', `${lost}: nothing of this command is applied, run it again`)
		return await new Listing(stage, isProtected, hidden, limits).whole()
	} catch (error) {
		if (error instanceof Void) return { changes: [], refused: [{ path: error.path, why: error.message }], void: true }
		throw error
	}
}

class Listing {
	readonly #stage: OverlayStage
	readonly #isProtected: Protected
	readonly #hidden: ReadonlySet<string>
	readonly #limits: CopyLimits
	readonly #changes: StagedChange[] = []
	readonly #refused: Refused[] = []
	/** By folder that stands in both parts: what the overlay shows there. */
	#shown = new Map<string, Set<string>>()
	#entries = 0
	#bytes = 0

	constructor(stage: OverlayStage, isProtected: Protected, hidden: ReadonlySet<string>, limits: CopyLimits) {
		this.#stage = stage
		this.#isProtected = isProtected
		this.#hidden = hidden
		this.#limits = limits
	}

	async whole(): Promise<StagedList> {
		const both = ['']
		await this.#findBoth('', both)
		try {
			this.#shown = await this.#stage.names(both)
		} catch (error) {
			throw new Void('.', strange(`nothing (${messageOf(error)})`))
		}
		await this.#folder('')
		return { changes: this.#changes, refused: this.#refused }
	}

	#upper(path: string): string {
		return join(this.#stage.path, path)
	}

	#lower(path: string): string {
		return join(this.#stage.base, path)
	}

	/** What the upper part has in a folder, in the order of names. */
	async #madeIn(folder: string): Promise<Map<string, Entry>> {
		const names = await namesIn(this.#upper(folder))
		const found = new Map<string, Entry>()
		for (let at = 0; at < names.length; at += together) {
			const some = names.slice(at, at + together)
			const entries = await Promise.all(some.map((name) => look(join(this.#upper(folder), name))))
			for (const [index, name] of some.entries()) {
				const entry = entries[index]
				// A name that is no text.
				if (!entry) throw new Void(join(folder, name), strange('a name that cannot be read'))
				found.set(name, entry)
			}
		}
		return found
	}

	/** So that a command cannot make Garuda hold more than a project may have. */
	#count(entry: Entry): void {
		this.#entries++
		this.#bytes += entry.kind === 'file' ? entry.size : 0
		const { entries, bytes } = this.#limits
		if (this.#entries > entries || this.#bytes > bytes)
			throw new Void(
				'.',
				`the command changed too much for staging: more than ${entries.toLocaleString('en')} files or ${Math.round(bytes / 2 ** 20).toLocaleString('en')} MB; nothing of it is applied`,
			)
	}

	#late(entry: Entry): boolean {
		return entry.ctimeNs > this.#stage.began
	}

	/** Folders below `rel` that stand in both parts, each of them maybe hidden as it was before. */
	async #findBoth(rel: string, both: string[]): Promise<void> {
		for (const [name, entry] of await this.#madeIn(rel)) {
			const path = rel === '' ? name : `${rel}/${name}`
			this.#count(entry)
			if (entry.kind !== 'folder' || closed(entry)) continue
			if ((await look(this.#lower(path)))?.kind !== 'folder') continue
			both.push(path)
			await this.#findBoth(path, both)
		}
	}

	/** One folder that stands in both parts. */
	async #folder(rel: string): Promise<void> {
		const at = (name: string) => (rel === '' ? name : `${rel}/${name}`)
		const base = await look(this.#lower(rel))
		const shown = this.#shown.get(rel)
		if (base?.kind !== 'folder' || !shown) throw new Void(rel, meanwhile)
		const odd = (): Void => (this.#late(base) ? new Void(rel, meanwhile) : new Void(rel || '.', strange('other names')))
		const entries = await this.#madeIn(rel)
		const made = [...entries.keys()]
		const below = await namesIn(this.#lower(rel)).catch((error) => {
			// Its owner shut it, so the command did not see into it either.
			if (codeOf(error) === 'EACCES') return []
			throw error
		})
		const under = below.filter((name) => !entries.has(name))
		const left = under.filter((name) => shown.has(name))
		// All of what lies below is seen, or none of it: a folder that was removed and made again hides it.
		if (left.length > 0 && left.length < under.length) throw odd()
		const gone = left.length < under.length ? under : []
		const above = made.filter((name) => !entries.get(name)!.whiteOut)
		if (shown.size !== above.length + left.length || !above.every((name) => shown.has(name))) throw odd()
		for (const name of [...gone, ...made.filter((name) => entries.get(name)!.whiteOut)].sort()) {
			const old = await look(this.#lower(at(name)))
			if (!old)
				throw this.#late(base) ? new Void(at(name), meanwhile) : new Void(at(name), strange('a removal of nothing'))
			await this.#lost(at(name), old)
		}
		for (const name of above) await this.#one(at(name), entries.get(name)!, base)
	}

	/** `parent` is the project's own folder. */
	async #one(path: string, entry: Entry, parent: Entry): Promise<void> {
		const old = await look(this.#lower(path))
		if (this.#hidden.has(this.#lower(path))) throw new Void(path, strange('a change of what is hidden'))
		if (!old) {
			// What the command changed may have been removed there meanwhile.
			if (this.#late(parent)) {
				const had = this.#stage.sight.had(folderOf(path), basename(path))
				if (had) throw new Void(path, meanwhile)
				if (had === undefined)
					throw new Void(
						path,
						'its folder changed in the project while the command ran: nothing of this command is applied, run it again',
					)
			}
			return this.#create(path, entry, false)
		}
		if (old.kind !== entry.kind) {
			const why = await forbidden(this.#stage, path, entry, this.#isProtected)
			if (why) return void this.#refused.push({ path, why })
			if (await this.#lost(path, old)) await this.#create(path, entry, false)
			return
		}
		if (entry.kind === 'folder') {
			// It may be another one that was moved to its name.
			if (this.#late(old) && this.#late(parent) && this.#stage.sight.same(path, this.#stage.began) !== true)
				throw new Void(path, meanwhile)
			if (closed(entry)) return void this.#refused.push({ path, why: closedWhy })
			if (entry.mode !== old.mode) await this.#change(path, old, entry, true)
			return this.#folder(path)
		}
		const [now, then] = [this.#upper(path), this.#lower(path)]
		const same =
			entry.kind === 'link'
				? (await readLink(now)) === (await readLink(then))
				: entry.kind === 'file' && (await sameBytes(now, then, entry))
		if (same && entry.mode === old.mode) return
		await this.#change(path, old, entry, same)
	}

	async #change(path: string, old: Entry, entry: Entry, modeOnly: boolean): Promise<void> {
		const why = await forbidden(this.#stage, path, entry, this.#isProtected)
		if (why) return void this.#refused.push({ path, why })
		if (this.#late(old)) throw new Void(path, meanwhile)
		const target = entry.kind === 'link' ? await readLink(this.#upper(path)) : undefined
		const oldTarget = old.kind === 'link' ? await readLink(this.#lower(path)) : undefined
		this.#changes.push({
			path,
			kind: 'change',
			old,
			new: entry,
			modeOnly,
			within: false,
			...(target !== undefined && { target }),
			...(oldTarget !== undefined && { oldTarget }),
		})
	}

	async #create(path: string, entry: Entry, within: boolean): Promise<void> {
		if (entry.whiteOut) throw new Void(path, strange('a removal of nothing'))
		const why = await forbidden(this.#stage, path, entry, this.#isProtected)
		if (why) return void this.#refused.push({ path, why })
		const target = entry.kind === 'link' ? await readLink(this.#upper(path)) : undefined
		this.#changes.push({
			path,
			kind: 'create',
			new: entry,
			modeOnly: false,
			within,
			...(target !== undefined && { target }),
		})
		if (entry.kind !== 'folder') return
		for (const [name, inner] of await this.#madeIn(path)) {
			this.#count(inner)
			await this.#create(`${path}/${name}`, inner, true)
		}
	}

	/** What goes, whole; false where something in it must stay, and then all of it does. */
	async #lost(path: string, old: Entry): Promise<boolean> {
		const found: [path: string, entry: Entry][] = []
		const kept = await this.#below(path, old, found)
		if (kept !== undefined) {
			const [at, why] = kept
			this.#refused.push({ path, why: at === path ? why : `${at} in it is ${why}` })
			return false
		}
		for (const [at, entry] of found) {
			if (this.#late(entry)) throw new Void(at, meanwhile)
			this.#stage.known.set(at, { base: entry })
			this.#changes.push({ path: at, kind: 'delete', old: entry, modeOnly: false, within: at !== path })
		}
		return true
	}

	/** Collects a tree of the project, parents first; the first path in it that must stay ends that. */
	async #below(
		path: string,
		entry: Entry,
		found: [path: string, entry: Entry][],
	): Promise<[path: string, why: string] | undefined> {
		const real = this.#lower(path)
		if (this.#isProtected(real) || this.#hidden.has(real)) return [path, 'protected or hidden from commands']
		// A socket, a pipe: it belongs to a program that runs.
		if (entry.kind === 'other') return [path, 'no file, folder or link']
		found.push([path, entry])
		if (entry.kind !== 'folder') return undefined
		let names: string[]
		try {
			names = await namesIn(real)
		} catch (error) {
			if (codeOf(error) === 'EACCES') return [path, 'not readable']
			throw error
		}
		for (let at = 0; at < names.length; at += together) {
			const some = names.slice(at, at + together).map((name) => `${path}/${name}`)
			const entries = await Promise.all(some.map((inner) => look(this.#lower(inner))))
			for (const [index, inner] of some.entries()) {
				const next = entries[index]
				if (!next) throw new Void(inner, meanwhile)
				const kept = await this.#below(inner, next, found)
				if (kept) return kept
			}
		}
		return undefined
	}
}
