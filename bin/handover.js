// A provider's key leaves this process's environment block, which every other process of the user can read in
// /proc/<pid>/environ: the keys go into a private file, the process replaces itself, and the first act is to read
// and unlink that file. Loaded by bin/run.js only when a key-like variable is set.
const fs = process.getBuiltinModule('node:fs')
const { join } = process.getBuiltinModule('node:path')

const keyName = /_(API_KEY|AUTH_TOKEN)$/
const uid = process.geteuid?.()
const prefix = `garuda-key-${uid}-`
const { O_WRONLY, O_RDONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants

function folders() {
	const home = process.env.GARUDA_HOME || (process.env.HOME && join(process.env.HOME, '.garuda'))
	return [process.env.XDG_RUNTIME_DIR, '/dev/shm', home && join(home, 'run')].filter(Boolean)
}

/** Replaces this process by itself with the keys out of the environment; returns only where that cannot be done. */
export function give() {
	// No execve before Node 22.15; an IPC channel would not survive it.
	if (!process.execve || process.channel || process.env.NODE_CHANNEL_FD !== undefined) return
	const keys = {}
	const environment = {}
	for (const [name, value] of Object.entries(process.env)) (keyName.test(name) ? keys : environment)[name] = value
	for (const folder of folders()) {
		const file = join(folder, prefix + random())
		try {
			if (folder.endsWith('/run')) makeOwn(folder)
			sweep(folder)
			const fd = fs.openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
			fs.writeSync(fd, JSON.stringify({ pid: process.pid, keys }))
			fs.closeSync(fd)
		} catch {
			drop(file)
			continue
		}
		try {
			environment.GARUDA_HANDOVER = file
			process.execve(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], environment)
		} catch {
			drop(file)
		}
		return
	}
}

/** Puts the handed keys back into `process.env`; a forged or stale file is ignored and left alone. */
export function take() {
	const file = process.env.GARUDA_HANDOVER
	delete process.env.GARUDA_HANDOVER
	const inside = folders().some(
		(folder) => file.startsWith(join(folder, prefix)) && /^[0-9a-f]{24}$/.test(file.slice(join(folder, prefix).length)),
	)
	if (!inside) return
	let fd
	try {
		fd = fs.openSync(file, O_RDONLY | O_NOFOLLOW)
		const stat = fs.fstatSync(fd)
		if (!stat.isFile() || stat.uid !== uid || (stat.mode & 0o777) !== 0o600 || stat.size > 65_536) return
		const { pid, keys } = JSON.parse(fs.readFileSync(fd, 'utf8'))
		// execve keeps the pid, so a name that leaked is useless to another process.
		if (pid !== process.pid) return
		fs.unlinkSync(file)
		for (const [name, value] of Object.entries(keys))
			if (keyName.test(name) && typeof value === 'string') process.env[name] = value
	} catch {
		// no keys: the verbs that need one say so
	} finally {
		if (fd !== undefined) fs.closeSync(fd)
	}
}

function random() {
	const bytes = new Uint8Array(12)
	const fd = fs.openSync('/dev/urandom', O_RDONLY)
	fs.readSync(fd, bytes)
	fs.closeSync(fd)
	return Buffer.from(bytes).toString('hex')
}

function makeOwn(folder) {
	for (const part of [join(folder, '..'), folder])
		try {
			fs.mkdirSync(part, 0o700)
		} catch (error) {
			if (error.code !== 'EEXIST') throw error
		}
	const stat = fs.lstatSync(folder)
	if (!stat.isDirectory() || stat.uid !== uid || (stat.mode & 0o077) !== 0) throw new Error('not our folder')
}

/** Files of a start that died between the write and the read. */
function sweep(folder) {
	for (const name of fs.readdirSync(folder))
		if (name.startsWith(prefix))
			try {
				const stat = fs.lstatSync(join(folder, name))
				if (stat.uid === uid && Date.now() - stat.mtimeMs > 60_000) fs.unlinkSync(join(folder, name))
			} catch {
				// another start swept it
			}
}

function drop(file) {
	try {
		fs.unlinkSync(file)
	} catch {
		// never written
	}
}
