// Which paths the file tools never touch and which they never write: decided on real paths, before any question.
import { sep } from 'node:path'

/** Ways to write one name that some disk, tool or reader takes for another: all become one spelling. */
export const foldName = (name: string): string => {
	// Fast and exact for plain names; the walker asks for every file.
	if (/^[a-z0-9._-]*[a-z0-9_-]$/.test(name)) return name
	const folded = name
		.normalize('NFKC')
		.replace(/[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}\p{Variation_Selector}]/gu, '')
		// Upper first: a dotless i or a long s folds onto its plain letter, as case-insensitive disks do.
		.toUpperCase()
		.toLowerCase()
		.normalize('NFKC')
		// NTFS: a stream of the folder is the folder.
		.replace(/:.*$/s, '')
		.replace(/[. ]+$/, '')
	return /^\.+$/.test(name) ? name : folded
}

/** The parts of a path in one spelling; a backslash separates as well, whatever the platform. */
const foldParts = (path: string): string[] =>
	path
		.split(/[/\\]+/)
		.filter((part) => part !== '' && part !== '.')
		.map(foldName)

const secretFolders = new Set(['.ssh', '.gnupg', '.aws', '.azure', '.password-store'])

const secretNames = new Set([
	'.netrc',
	'_netrc',
	'.npmrc',
	'.yarnrc.yml',
	'.pypirc',
	'.git-credentials',
	'.pgpass',
	'.my.cnf',
	'.htpasswd',
	'.vault-token',
	'.dockercfg',
	'.boto',
	'.s3cfg',
	'.bash_history',
	'.zsh_history',
	'.psql_history',
	'.mysql_history',
	'.node_repl_history',
	'.python_history',
	'application_default_credentials.json',
])

const envExamples = /\.(?:example|sample|template|tpl|dist|defaults?|schema)$/
const keyFiles = /\.(?:pem|p12|pfx|ppk|jks|keystore|kdbx|key)$|^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$|^ssh_host_\w+_key$/

/** Folder below home → names in it that hold secrets; '*' means everything below. */
const homeSecrets = new Map<string, string[]>([
	['.garuda', ['*']],
	['.kube', ['config']],
	['.docker', ['config.json']],
	['.cargo', ['credentials', 'credentials.toml']],
	['.gem', ['credentials']],
	['.m2', ['settings.xml', 'settings-security.xml']],
	['.gradle', ['gradle.properties']],
	['.terraform.d', ['credentials.tfrc.json']],
	['.mozilla', ['*']],
	['.thunderbird', ['*']],
	['.config/gcloud', ['*']],
	['.config/gh', ['hosts.yml']],
	['.config/hub', ['*']],
	['.config/glab-cli', ['*']],
	['.config/op', ['*']],
	['.config/rclone', ['*']],
	['.config/google-chrome', ['*']],
	['.config/chromium', ['*']],
	['.config/bravesoftware', ['*']],
	['.config/microsoft-edge', ['*']],
	['.config/git', ['credentials']],
	['.local/share/keyrings', ['*']],
	['.local/share/kwalletd', ['*']],
	['library/keychains', ['*']],
	['library/cookies', ['*']],
	['library/application support/google/chrome', ['*']],
	['library/application support/firefox', ['*']],
	['library/application support/bravesoftware', ['*']],
])

const systemPaths = [
	'proc',
	'sys',
	'dev',
	'etc/shadow',
	'etc/shadow-',
	'etc/gshadow',
	'etc/gshadow-',
	'etc/sudoers',
	'etc/sudoers.d',
	'etc/ssl/private',
	'run/secrets',
	'run/credentials',
	'var/run/secrets',
]

const below = (parts: readonly string[], folder: readonly string[]): boolean =>
	folder.length <= parts.length && folder.every((part, index) => parts[index] === part)

/** Why a file of this name holds a secret wherever it lies, or null. `name` is one path part. */
export const secretName = (name: string): string | null => {
	const folded = foldName(name)
	if ((folded === '.env' || folded.startsWith('.env.')) && !envExamples.test(folded)) return 'an environment file with secrets'
	if (secretNames.has(folded)) return 'a file with credentials'
	return keyFiles.test(folded) ? 'a private key' : null
}

/** Why the file tools must not touch a real path, or null. `root` may lie inside ~/.garuda (a job's worktree): it stays usable. */
export const sensitiveReason = (real: string, home: string, roots: readonly string[]): string | null => {
	const parts = foldParts(real)
	for (const path of systemPaths)
		if (below(parts, path.split('/'))) return path.startsWith('etc') ? 'a system secret' : 'a device or system path'
	for (const part of parts) if (secretFolders.has(part)) return 'in a folder with secrets'
	const last = parts.at(-1)
	const named = last === undefined ? null : secretName(last)
	if (named) return named
	const homeParts = foldParts(home)
	if (homeParts.length === 0 || !below(parts, homeParts)) return null
	const rest = parts.slice(homeParts.length)
	for (let depth = 1; depth <= Math.min(rest.length, 4); depth++) {
		const folder = rest.slice(0, depth).join('/')
		const names = homeSecrets.get(folder)
		if (!names) continue
		if (names[0] !== '*') {
			if (rest.length === depth + 1 && names.includes(rest[depth]!)) return 'a file with credentials'
			continue
		}
		if (folder === '.garuda' && roots.some((root) => inOwnHome(root, home) && under(real, root))) continue
		return folder === '.garuda' ? 'Garuda’s own folder' : 'in a folder with secrets'
	}
	return null
}

/** A root strictly inside ~/.garuda: a worktree that Garuda made. */
const inOwnHome = (root: string, home: string): boolean => root.startsWith(`${home}${sep}.garuda${sep}`)

/** Whether a path is a folder or below it; both absolute and without links. */
export const under = (path: string, folder: string): boolean =>
	path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

const protectedNames = new Map<string, string>([
	['.git', 'the repository’s own files'],
	['git~1', 'the repository’s own files'],
	['.gitmodules', 'configuration that fetches code'],
	['.garuda', 'Garuda’s configuration'],
	['.claude', 'an agent’s configuration'],
	['.cursor', 'an agent’s configuration'],
	['.codex', 'an agent’s configuration'],
	['.gemini', 'an agent’s configuration'],
	['.mcp.json', 'configuration that starts programs'],
	['.vscode', 'the editor’s configuration'],
	['.idea', 'the editor’s configuration'],
	['.zed', 'the editor’s configuration'],
	['.devcontainer', 'configuration that starts programs'],
	['.envrc', 'configuration that starts programs'],
	['.husky', 'hooks'],
])

/** In the home folder itself: files that a shell or a login runs. */
const startNames =
	/^\.(?:bash(?:rc|_profile|_login|_logout|_aliases)|profile|zshrc|zshenv|zprofile|zlogin|kshrc|cshrc|tcshrc|inputrc|xinitrc|xprofile|xsessionrc|gitconfig|vimrc|tmux\.conf|pam_environment)$/
const startFolders = ['.config/fish', '.config/systemd', '.config/autostart', '.config/git', '.local/bin', 'library/launchagents', 'bin']

/**
 * Why a real path below `root` must not be written, or null. Names count at any depth, in any spelling that a disk
 * could take for them, a backslash as a separator.
 */
export const protectedReason = (real: string, root: string, home: string): string | null => {
	if (!under(real, root)) return null
	for (const part of foldParts(real.slice(root.length))) {
		const reason = protectedNames.get(part)
		if (reason) return reason
	}
	if (!under(real, home)) return null
	const rest = foldParts(real.slice(home.length))
	const path = rest.join('/')
	if (rest.length === 1 && startNames.test(path)) return 'run at login'
	return startFolders.some((folder) => path === folder || path.startsWith(`${folder}/`)) ? 'run at login' : null
}
