// Names the sandbox knows: what of a home is secret, what of a project later runs on the host, what of the environment passes.

/** Folders and files of a home that hold keys, tokens, cookies or what was typed. Hidden from commands when they exist. */
export const homeSecrets = [
	...['.ssh', '.gnupg', '.password-store', '.age', '.config/age', '.config/sops', '.config/op', '.1password'],
	...['.local/share/keyrings', '.local/share/kwalletd', '.vault-token', '.config/Bitwarden', '.config/Bitwarden CLI'],
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
		'.config/Claude',
		'.openai',
		'.anthropic',
		'.cursor',
		'.config/Cursor',
	],
	// Clouds and code hosts.
	...['.aws', '.azure', '.config/gcloud', '.kube', '.docker', '.oci', '.bluemix', '.fly', '.pulumi', '.s3cfg', '.boto'],
	...[
		'.config/gh',
		'.config/glab-cli',
		'.config/hub',
		'.config/doctl',
		'.config/rclone',
		'.config/heroku',
		'.config/ngrok',
	],
	...[
		'.config/netlify',
		'.config/stripe',
		'.config/containers/auth.json',
		'.local/share/com.vercel.cli',
		'.terraformrc',
	],
	...['.terraform.d/credentials.tfrc.json', '.databrickscfg', '.snowflake', '.cache/huggingface/token', '.kaggle'],
	// Package registries and version control.
	...['.netrc', '_netrc', '.npmrc', '.pypirc', '.git-credentials', '.config/git/credentials', '.cargo/credentials'],
	...['.cargo/credentials.toml', '.gem/credentials', '.m2/settings-security.xml', '.gradle/gradle.properties'],
	...['.composer/auth.json', '.config/composer/auth.json', '.config/pip/pip.conf', '.pip/pip.conf'],
	// Databases.
	...['.pgpass', '.my.cnf', '.mylogin.cnf', '.psql_history', '.mysql_history', '.rediscli_history', '.sqlite_history'],
	// Browsers and mail.
	...['.mozilla', '.thunderbird', '.config/google-chrome', '.config/chromium', '.config/BraveSoftware'],
	...['.config/microsoft-edge', '.config/vivaldi', '.config/opera', '.var/app', 'snap/firefox', 'snap/chromium'],
	...['Library/Keychains', 'Library/Cookies', 'Library/Mail', 'Library/Messages', 'Library/Safari'],
	...['Library/Application Support/Google/Chrome', 'Library/Application Support/Firefox'],
	...['Library/Application Support/com.apple.TCC', 'Library/Group Containers'],
	// What was typed.
	...['.bash_history', '.zsh_history', '.zsh_sessions', '.local/share/fish/fish_history', '.history', '.lesshst'],
	...['.viminfo', '.local/share/nvim/shada', '.node_repl_history', '.python_history', '.irb_history'],
	// Coins.
	...['.bitcoin', '.ethereum', '.electrum', '.config/solana'],
]

/** Outside every home; only of use to a user who can read them (root). */
export const systemSecrets = [
	...['/etc/shadow', '/etc/shadow-', '/etc/gshadow', '/etc/gshadow-'],
	...['/etc/ssh/ssh_host_rsa_key', '/etc/ssh/ssh_host_ecdsa_key', '/etc/ssh/ssh_host_ed25519_key', '/etc/krb5.keytab'],
	...[
		'/etc/ssl/private',
		'/etc/NetworkManager/system-connections',
		'/etc/wireguard',
		'/var/lib/docker',
		'/var/lib/kubelet',
	],
]

/** In /proc: names of keys, and on some kernels of every process. The rest of /proc that matters asks for capabilities. */
export const procHidden = ['keys', 'timer_list', 'sched_debug', 'latency_stats']

/** Where daemons keep their sockets and programs their scratch; a command gets empty ones. */
export const privateFolders = ['/run', '/var/run', '/tmp', '/var/tmp', '/dev/shm']

/** Inside a working root: what editors, git, shells and agents on the host run or obey without being asked. Read-only for commands. */
export const rootProtected = [
	...['.garuda', '.claude', '.codex', '.gemini', '.cursor', '.opencode', '.mcp.json'],
	...[
		'.vscode',
		'.idea',
		'.zed',
		'.fleet',
		'.run',
		'.devcontainer',
		'.exrc',
		'.nvimrc',
		'.nvim.lua',
		'.vimrc',
		'.dir-locals.el',
	],
	...['.envrc', '.husky'],
]

/** Parts of a git folder that make git run programs or obey other folders. */
export const gitProtected = ['config', 'config.worktree', 'hooks', 'info', 'commondir']

/** A home inside a writable folder (root = home): what the next login or tool start on the host would run. */
export const homeProtected = [
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
	...['.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '.oh-my-zsh', '.config/fish', '.config/nushell'],
	...[
		'.gitconfig',
		'.config/git',
		'.config/autostart',
		'.config/systemd',
		'.config/environment.d',
		'.config/plasma-workspace',
	],
	...[
		'.local/bin',
		'bin',
		'.local/share/applications',
		'.xprofile',
		'.xsession',
		'.xsessionrc',
		'.xinitrc',
		'.tmux.conf',
	],
	...[
		'.vim',
		'.config/nvim',
		'.emacs',
		'.emacs.d',
		'.config/Code/User',
		'.vscode-server',
		'.config/direnv',
		'.config/mise',
	],
	...[
		'.cargo/bin',
		'.cargo/config',
		'.cargo/config.toml',
		'.cargo/env',
		'.npm-global',
		'.nvm',
		'.pyenv',
		'.rbenv',
		'.asdf',
	],
	...['.m2/settings.xml', '.gradle/init.d', '.gradle/init.gradle', 'Library/LaunchAgents'],
]

/** Variables that reach a command: places, languages and tool homes; never keys, loaders (LD_*), GIT_*, npm_config_* or NODE_OPTIONS. */
export const envAllowed: ReadonlySet<string> = new Set([
	...['PATH', 'USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'TZ', 'COLUMNS', 'LINES', 'HOSTTYPE'],
	...['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_CACHE_HOME', 'XDG_STATE_HOME', 'XDG_DATA_DIRS', 'XDG_CONFIG_DIRS'],
	...['JAVA_HOME', 'JDK_HOME', 'M2_HOME', 'MAVEN_HOME', 'GRADLE_HOME', 'GRADLE_USER_HOME', 'SDKMAN_DIR', 'KOTLIN_HOME'],
	...[
		'ANDROID_HOME',
		'ANDROID_SDK_ROOT',
		'GOPATH',
		'GOROOT',
		'GOBIN',
		'GOCACHE',
		'GOMODCACHE',
		'CARGO_HOME',
		'RUSTUP_HOME',
	],
	...[
		'NVM_DIR',
		'NVM_BIN',
		'FNM_DIR',
		'VOLTA_HOME',
		'PNPM_HOME',
		'BUN_INSTALL',
		'DENO_DIR',
		'COREPACK_HOME',
		'N_PREFIX',
	],
	...['PYENV_ROOT', 'VIRTUAL_ENV', 'CONDA_PREFIX', 'CONDA_DEFAULT_ENV', 'UV_CACHE_DIR', 'POETRY_HOME', 'PIPX_HOME'],
	...['RBENV_ROOT', 'GEM_HOME', 'GEM_PATH', 'BUNDLE_PATH', 'ASDF_DIR', 'ASDF_DATA_DIR', 'MISE_DATA_DIR', 'DOTNET_ROOT'],
	...['NIX_PROFILES', 'NIX_PATH', 'LOCALE_ARCHIVE', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'TERMINFO', 'TERMINFO_DIRS'],
	...['SOURCE_DATE_EPOCH', 'FLUTTER_ROOT', 'GHCUP_INSTALL_BASE_PREFIX', 'STACK_ROOT', 'OPAMROOT', 'JULIA_DEPOT_PATH'],
])

/** What an editor variable runs: ends at once and says what to do instead. */
const noEditor =
	"echo 'There is no editor here: give the text on the command line (for example git commit -m).' >&2; false"

/** Set for every command, over whatever passed. NO_COLOR stays unset: a terminal of type dumb and no tty already mean no colour, and it changes what some tests see. */
export const envFixed: Readonly<Record<string, string>> = {
	TERM: 'dumb',
	SHELL: '/bin/bash',
	PAGER: 'cat',
	GIT_PAGER: 'cat',
	MANPAGER: 'cat',
	SYSTEMD_PAGER: 'cat',
	EDITOR: noEditor,
	VISUAL: noEditor,
	GIT_EDITOR: noEditor,
	GIT_SEQUENCE_EDITOR: noEditor,
	GIT_TERMINAL_PROMPT: '0',
	DEBIAN_FRONTEND: 'noninteractive',
}
