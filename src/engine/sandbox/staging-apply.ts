// Puts what a staged command changed into the project: all of it or nothing, and never over what changed meanwhile.
import { randomBytes } from 'node:crypto'
import { constants, promises as fs } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { messageOf, ToolError } from '../errors.ts'
import { type Folder, openFolder, type Way, wayHere } from '../files/open.ts'
import { oneLine } from '../text.ts'
import { type Entry, look, remove, type StagedTree } from './staging-copy.ts'
import type { StagedChange } from './staging-list.ts'

/** One name in one folder of the project: what stands there goes, what was made takes its place. */
interface Step {
	copy: StagedTree
	path: string
	change: StagedChange
	/** Beside the target; absent for a deletion or a mode. */
	temp?: string
	/** Where the old one is kept until all is done. */
	backup?: string
	done?: boolean
}

const temporary = (path: string): string =>
	`.${basename(path).slice(0, 40)}.${randomBytes(6).toString('hex')}.garuda-tmp`

const conflict = (path: string): ToolError =>
	new ToolError(
		`${oneLine(path, 300)} changed in the project while the command ran or was asked about. Nothing was applied; run it again.`,
	)

/**
 * First everything is checked and written beside its place, then one rename after another, each over exactly what the copy
 * was made from; a failure takes back what was done. Folders are opened part by part with no link followed. Throws ToolError
 * (a conflict, a full disk); the project is then as before. An abort counts until the first rename.
 */
export const applyChanges = (copy: StagedTree, changes: readonly StagedChange[], signal: AbortSignal): Promise<void> =>
	applyAll([{ copy, changes }], signal)

/** The same for the changes of several roots: all of them or none. */
export const applyAll = async (
	parts: readonly { copy: StagedTree; changes: readonly StagedChange[] }[],
	signal: AbortSignal,
): Promise<void> => {
	const way = await wayHere()
	const steps = parts.flatMap(({ copy, changes }) => plan(copy, changes))
	const own: OwnKeys = new Map()
	const at = async <T>({ copy, path }: Step, work: (folder: Folder, name: string) => Promise<T>): Promise<T> => {
		const folder = await openFolder(dirname(join(copy.base, path)), way)
		try {
			return await work(folder, basename(path))
		} finally {
			await folder.close()
		}
	}
	const made = new Map(
		parts.map(({ copy, changes }) => [
			copy,
			new Set(changes.filter(({ kind }) => kind !== 'delete').map(({ path }) => path)),
		]),
	)
	try {
		for (const step of steps) {
			signal.throwIfAborted()
			await at(step, async (folder, name) => {
				await unchanged(step, folder.at(name), own)
				if (step.change.kind === 'delete' || step.change.modeOnly) return
				step.temp = temporary(step.path)
				await build(join(step.copy.path, step.path), folder.at(step.temp), step, made.get(step.copy)!)
			})
		}
		signal.throwIfAborted()
		for (const step of steps) await at(step, (folder, name) => commit(step, folder, name, way, own))
	} catch (error) {
		const lost: string[] = []
		for (const step of [...steps].reverse())
			await at(step, (folder, name) => takeBack(step, folder, name)).catch(() => lost.push(step.path))
		if (lost.length > 0)
			throw new ToolError(
				`Applying failed (${messageOf(error)}), and these could not be put back: ${lost.map((path) => oneLine(path, 200)).join(', ')}. What was there stands beside them as .*.garuda-tmp; /undo restores the turn's beginning.`,
			)
		if (error instanceof ToolError || signal.aborted) throw error
		throw new ToolError(`The changes could not be applied: ${messageOf(error)}. Nothing was changed in the project.`)
	}
	// Nothing depends on these any more.
	for (const step of steps) if (step.backup) await at(step, (folder) => remove(folder.at(step.backup!))).catch(() => {})
}

/** The topmost changes, parents first; a name that goes and comes back as another kind is one step. Modes of folders last. */
const plan = (copy: StagedTree, changes: readonly StagedChange[]): Step[] => {
	const byPath = new Map<string, Step>()
	for (const one of changes) {
		if (one.within) continue
		// A new mode would show under the file's other names as well, here or elsewhere: this one becomes a file of its own.
		const change = one.modeOnly && one.old?.links ? { ...one, modeOnly: false } : one
		const before = byPath.get(change.path)
		byPath.set(change.path, {
			copy,
			path: change.path,
			change: before ? { ...change, ...(before.change.old && { old: before.change.old }) } : change,
		})
	}
	const late = ({ change }: Step) => change.modeOnly && change.new?.kind === 'folder'
	const steps = [...byPath.values()]
	return [...steps.filter((step) => !late(step)), ...steps.filter(late)]
}

/** By device and inode: the key that a file has after our own link, rename or chmod. It may have more names, and steps, than one. */
type OwnKeys = Map<string, string>

const inode = ({ weak }: Entry): string => weak.split(' ', 3).join(' ')

/** Keeps what `now` is, where it differs from `old` in nothing but its mode and what our own step moved. */
const keepOwn = (own: OwnKeys, now: Entry | undefined, old: Entry | undefined): void => {
	const content = (entry: Entry) => entry.weak.slice(0, entry.weak.lastIndexOf(' '))
	if (now?.kind === 'file' && old && content(now) === content(old)) own.set(inode(now), now.key)
}

/** The very same file, changed by nobody but us. */
const same = (now: Entry | undefined, old: Entry, own: OwnKeys): boolean =>
	now !== undefined && (now.key === old.key || now.key === own.get(inode(old)))

/** Throws unless the project has there what the copy was made from: all of a folder that goes. */
const unchanged = async ({ copy, path, change }: Step, real: string, own: OwnKeys): Promise<void> => {
	if (!change.old) {
		if (await look(real)) throw conflict(path)
		return
	}
	if (change.old.kind !== 'folder') {
		if (!same(await look(real), change.old, own)) throw conflict(path)
		return
	}
	if ((await look(real))?.kind !== 'folder') throw conflict(path)
	if (!change.modeOnly) await sameTree(copy, path, real, own)
}

const sameTree = async (copy: StagedTree, path: string, real: string, own: OwnKeys): Promise<void> => {
	for (const name of await fs.readdir(real)) {
		const inner = `${path}/${name}`
		const [known, now] = [copy.known.get(inner), await look(join(real, name))]
		// A socket or a hidden file never was in the copy, so the command cannot have meant to delete it.
		if (!known || known.skipped || !now || now.kind !== known.base.kind) throw conflict(inner)
		if (now.kind === 'folder') await sameTree(copy, inner, join(real, name), own)
		else if (!same(now, known.base, own)) throw conflict(inner)
	}
}

/** Copies a staged file, link or folder to a fresh name beside its place; of a folder only what may be applied. */
const build = async (
	from: string,
	to: string,
	step: Step,
	made: ReadonlySet<string>,
	path = step.path,
): Promise<void> => {
	const entry = await look(from)
	if (entry?.kind === 'link') return fs.symlink(await fs.readlink(from), to)
	if (entry?.kind === 'file') {
		await fs.copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
		const old = step.change.old
		if (path === step.path && old?.kind === 'file' && (old.uid !== entry.uid || old.gid !== entry.gid))
			await fs.chown(to, old.uid, old.gid).catch(() => {})
		// After chown, which drops bits.
		await fs.chmod(to, entry.mode)
		const handle = await fs.open(to, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => null)
		await handle?.sync().finally(() => handle.close())
		return
	}
	if (entry?.kind !== 'folder') throw new Error(`${path} is no file, folder or link`)
	await fs.mkdir(to, { mode: 0o700 })
	for (const name of await fs.readdir(from))
		if (made.has(`${path}/${name}`)) await build(join(from, name), join(to, name), step, made, `${path}/${name}`)
	await fs.chmod(to, entry.mode)
}

const commit = async (step: Step, folder: Folder, name: string, way: Way, own: OwnKeys): Promise<void> => {
	const { copy, change, temp } = step
	await folder.check()
	await unchanged(step, folder.at(name), own)
	if (change.modeOnly) {
		step.done = true
		await setMode(folder, name, change.new!.mode, way)
		return keepOwn(own, await look(folder.at(name)), change.old)
	}
	if (change.old) {
		const backup = temporary(step.path)
		const replaces = change.old.kind === 'file' && change.new?.kind === 'file'
		// A second name for the old file, so that its own is never without a file; elsewhere it moves away.
		const linked = replaces && (await fs.link(folder.at(name), folder.at(backup)).then(yes, no))
		if (!linked) await fs.rename(folder.at(name), folder.at(backup))
		step.backup = backup
		const kept = await look(folder.at(backup))
		const moved = own.get(inode(change.old))?.startsWith(`${kept?.weak} `) === true
		if (kept?.weak !== change.old.weak && !moved && change.old.kind !== 'folder') throw conflict(step.path)
		if (change.old.kind === 'folder') await sameTree(copy, step.path, folder.at(backup), own)
	}
	if (temp !== undefined) await place(change, temp, folder, name)
	step.done = true
	if (step.backup !== undefined) keepOwn(own, await look(folder.at(step.backup)), change.old)
}

const place = async (change: StagedChange, temp: string, folder: Folder, name: string): Promise<void> => {
	if (change.old?.kind === 'file' && change.new?.kind === 'file') await fs.rename(folder.at(temp), folder.at(name))
	else if (change.new?.kind === 'folder') {
		// mkdir fails where something stands, rename over an own empty folder then changes nothing else.
		await fs.mkdir(folder.at(name), { mode: 0o700 })
		await fs.rename(folder.at(temp), folder.at(name))
	} else {
		// link() fails where a name is taken, a rename would not.
		await fs.link(folder.at(temp), folder.at(name))
		await fs.unlink(folder.at(temp))
	}
}

const yes = () => true
const no = () => false

const setMode = async (folder: Folder, name: string, mode: number, way: Way): Promise<void> => {
	const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
	// Where even the owner may not read, there is no way through an open file.
	const handle = await fs.open(folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => null)
	if (!handle) {
		if (way === 'paths' || (await look(folder.at(name)))?.kind === 'link') throw conflict(name)
		return fs.chmod(folder.at(name), mode)
	}
	try {
		await handle.chmod(mode)
	} finally {
		await handle.close()
	}
}

const takeBack = async (step: Step, folder: Folder, name: string): Promise<void> => {
	const { change, temp, backup, done } = step
	if (change.modeOnly) {
		if (done) await fs.chmod(folder.at(name), change.old!.mode)
		return
	}
	if (done && !change.old) await remove(folder.at(name))
	if (backup !== undefined) {
		// What took its place is ours, or nothing stands there.
		if (done && temp !== undefined && change.old?.kind !== change.new?.kind) await remove(folder.at(name))
		else if (done && change.old?.kind === 'folder' && temp !== undefined) await remove(folder.at(name))
		if (!done && (await look(folder.at(name)))) await remove(folder.at(backup))
		else await fs.rename(folder.at(backup), folder.at(name))
	}
	if (temp !== undefined) await remove(folder.at(temp))
}
