// Which paths the file tools never touch and which they never write: decided on real paths, before any question.
import { sep } from 'node:path'

/** Ways to write one name that some disk, tool or reader takes for another: all become one spelling. */
export const foldName = (name: string): string => {
	// Fast and exact, for the walker asks for every file: printable ASCII without a colon has nothing to fold but its case.
	if (/^[ -9;-~]*[!-\-/-9;-~]$/.test(name)) return name.toLowerCase()
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
const foldParts = (path: string): string[] => {
	const parts: string[] = []
	for (const part of path.includes('\\') ? path.split(/[/\\]+/) : path.split('/'))
		if (part !== '' && part !== '.') parts.push(foldName(part))
	return parts
}

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
const keyFiles =
	/\.(?:pem|p12|pfx|ppk|jks|keystore|kdbx|key)$|^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$|^ssh_host_\w+_key$/

/** Below home: files, and folders with all that is in them, that hold keys, tokens, cookies, mail or what was typed. Folded spelling. */
const homeSecrets = new Set([
	...['.age', '.config/age', '.config/sops', '.config/op', '.1password', '.config/bitwarden', '.config/bitwarden cli'],
	...['.local/share/keyrings', '.local/share/kwalletd'],
	// Garuda itself and other agents: their keys and their logs.
	...[
		'.garuda',
		'.claude',
		'.claude.json',
		'.codex',
		'.gemini',
		'.copilot',
		'.qwen',
		'.kimi',
		'.config/github-copilot',
	],
	...[
		'.config/opencode',
		'.local/share/opencode',
		'.config/claude',
		'.openai',
		'.anthropic',
		'.cursor',
		'.config/cursor',
	],
	// Clouds and code hosts.
	...['.config/gcloud', '.kube', '.docker', '.oci', '.bluemix', '.fly', '.pulumi', '.config/gh', '.config/glab-cli'],
	...[
		'.config/hub',
		'.config/doctl',
		'.config/rclone',
		'.config/heroku',
		'.config/ngrok',
		'.config/netlify',
		'.config/stripe',
	],
	...[
		'.config/containers/auth.json',
		'.local/share/com.vercel.cli',
		'.terraformrc',
		'.terraform.d/credentials.tfrc.json',
	],
	...['.databrickscfg', '.snowflake', '.cache/huggingface/token', '.kaggle'],
	// Package registries and version control.
	...[
		'.config/git/credentials',
		'.cargo/credentials',
		'.cargo/credentials.toml',
		'.gem/credentials',
		'.m2/settings.xml',
	],
	...['.m2/settings-security.xml', '.gradle/gradle.properties', '.composer/auth.json', '.config/composer/auth.json'],
	...['.config/pip/pip.conf', '.pip/pip.conf'],
	// Browsers, mail and chat.
	...[
		'.mozilla',
		'.thunderbird',
		'.config/google-chrome',
		'.config/chromium',
		'.config/bravesoftware',
		'.config/microsoft-edge',
	],
	...['.config/vivaldi', '.config/opera', '.var/app', 'snap/firefox', 'snap/chromium'],
	...['library/keychains', 'library/cookies', 'library/mail', 'library/messages', 'library/safari'],
	...['library/application support/google/chrome', 'library/application support/firefox'],
	...[
		'library/application support/bravesoftware',
		'library/application support/com.apple.tcc',
		'library/group containers',
	],
	// What was typed.
	...['.zsh_sessions', '.local/share/fish/fish_history', '.history', '.lesshst', '.viminfo', '.local/share/nvim/shada'],
	...['.irb_history', '.rediscli_history', '.sqlite_history', '.mylogin.cnf'],
	// Coins.
	...['.bitcoin', '.ethereum', '.electrum', '.config/solana'],
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
	'etc/krb5.keytab',
	'etc/networkmanager/system-connections',
	'etc/wireguard',
	'var/lib/docker',
	'var/lib/kubelet',
	'run/secrets',
	'run/credentials',
	'var/run/secrets',
]

const systemFolders = systemPaths.map((one) => one.split('/'))

const below = (parts: readonly string[], folder: readonly string[]): boolean =>
	folder.length <= parts.length && folder.every((part, index) => parts[index] === part)

/** Why a file of this name holds a secret wherever it lies, or null. `name` is one path part. */
export const secretName = (name: string): string | null => {
	const folded = foldName(name)
	if ((folded === '.env' || folded.startsWith('.env.')) && !envExamples.test(folded))
		return 'an environment file with secrets'
	if (secretNames.has(folded)) return 'a file with credentials'
	return keyFiles.test(folded) ? 'a private key' : null
}

/** Why a path of the system itself (devices, processes, its secrets) is off limits, or null. */
export const systemReason = (path: string): string | null => systemOf(foldParts(path))

const systemFirst = new Set(systemFolders.map((one) => one[0]!))

const systemOf = (parts: readonly string[]): string | null => {
	if (parts[0] === undefined || !systemFirst.has(parts[0])) return null
	const found = systemFolders.find((one) => below(parts, one))
	if (found === undefined) return null
	return /^(?:etc|var|run)$/.test(found[0]!) ? 'a system secret' : 'a device or system path'
}

/** Why the file tools must not touch a real path, or null. `root` may lie inside ~/.garuda (a job's worktree): it stays usable. */
export const sensitiveReason = (real: string, home: string, roots: readonly string[]): string | null => {
	const parts = foldParts(real)
	const system = systemOf(parts)
	if (system) return system
	for (const part of parts) if (secretFolders.has(part)) return 'in a folder with secrets'
	const last = parts.at(-1)
	const named = last === undefined ? null : secretName(last)
	if (named) return named
	const homeParts = foldParts(home)
	if (homeParts.length === 0 || !below(parts, homeParts)) return null
	const rest = parts.slice(homeParts.length)
	for (let depth = 1; depth <= Math.min(rest.length, 4); depth++) {
		const path = rest.slice(0, depth).join('/')
		if (!homeSecrets.has(path)) continue
		if (path === '.garuda' && roots.some((root) => inOwnHome(root, home) && under(real, root))) continue
		return path === '.garuda' ? 'Garuda’s own folder' : 'it holds credentials or private data'
	}
	return null
}

/** A root strictly inside ~/.garuda: a worktree that Garuda made. */
const inOwnHome = (root: string, home: string): boolean => root.startsWith(`${home}${sep}.garuda${sep}`)

/** Whether a path is a folder or below it; both absolute and without links. */
export const under = (path: string, folder: string): boolean =>
	path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

const configuration = 'configuration that programs on this machine obey'
/** Names at any depth of a root. Paths of several parts count from the root. */
const protectedNames = new Map<string, string>([
	...['.git', 'git~1'].map((name) => [name, 'the repository’s own files'] as const),
	['.garuda', 'Garuda’s configuration'],
	...['.claude', '.codex', '.gemini', '.cursor', '.opencode', '.mcp.json'].map(
		(name) => [name, 'an agent’s configuration'] as const,
	),
	...['.vscode', '.idea', '.zed', '.fleet', '.run', '.exrc', '.nvimrc', '.nvim.lua', '.vimrc', '.dir-locals.el'].map(
		(name) => [name, 'an editor’s configuration'] as const,
	),
	...['.envrc', '.devcontainer', '.gitmodules'].map((name) => [name, configuration] as const),
	['.husky', 'hooks'],
])

/** In the home folder itself (root = home): what the next login or tool start would run. Folded spelling. */
const homeProtected = new Set([
	...[
		'.bashrc',
		'.bash_profile',
		'.bash_login',
		'.bash_logout',
		'.bash_aliases',
		'.profile',
		'.inputrc',
		'.pam_environment',
	],
	...['.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '.oh-my-zsh', '.kshrc', '.cshrc', '.tcshrc'],
	...['.config/fish', '.config/nushell', '.gitconfig', '.config/git', '.config/autostart', '.config/systemd'],
	...['.config/environment.d', '.config/plasma-workspace', '.local/bin', 'bin', '.local/share/applications'],
	...['.xprofile', '.xsession', '.xsessionrc', '.xinitrc', '.tmux.conf', '.vim', '.config/nvim', '.emacs', '.emacs.d'],
	...['.config/code/user', '.vscode-server', '.config/direnv', '.config/mise', '.cargo/bin', '.cargo/config'],
	...['.cargo/config.toml', '.cargo/env', '.npm-global', '.nvm', '.pyenv', '.rbenv', '.asdf', '.gradle/init.d'],
	...['.gradle/init.gradle', 'library/launchagents'],
])

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
	for (let depth = 1; depth <= Math.min(rest.length, 3); depth++)
		if (homeProtected.has(rest.slice(0, depth).join('/'))) return configuration
	return null
}
