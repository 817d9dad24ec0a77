// Tools that start what stands in their words, variables that hold a command, code that is read from the input. One line for each way.
import { expect } from 'chai'
import { DYNAMIC, readShell } from '../../../src/engine/permission/shell-words.ts'

/** The commands that a text may run, words joined by blanks. */
const read = async (text: string): Promise<string[]> =>
	(await readShell(text)).commands.map(({ words }) => words.join(' '))

const all = (title: string, texts: readonly string[]) =>
	it(title, async () => {
		for (const text of texts) expect(await read(text), text).to.include('gaa b')
	})

const none = (title: string, texts: readonly string[]) =>
	it(title, async () => {
		for (const text of texts) expect(await read(text), text).to.not.include('gaa b')
	})

describe('permission: tools and variables that hold commands', () => {
	all('deny-12 of several options that are not known each may take the next word', [
		'nice -a -b gaa b',
		'nice -a v -b gaa b',
		'nice -a v -b w gaa b',
		'nice -a v -b w -c x gaa b',
		'timeout -a v -b w 5 gaa b',
		'timeout -a v -b w 5 -- gaa b',
		'watch -a v -b w gaa b',
		'env - gaa b',
		'env - A=1 gaa b',
		'env -a v -b - A=1 gaa b',
	])

	it('deny-12 a word that an option takes is no command', async () => {
		for (const [name, options] of [
			['script', '-t -T'],
			['ssh', '-B -b -c -D -E -e -F -I -i -J -L -l -M -m -O -p -Q -R -S -W -w'],
			['sem', '-j'],
			['env_parallel', '-j'],
		] as const)
			for (const option of options.split(' ')) {
				const text = `/usr/bin/${name} ${option} gaa x y z`
				expect(await read(text), text).to.satisfy((commands: string[]) =>
					commands.every((one) => !one.startsWith('gaa ')),
				)
			}
	})

	it('deny-12 wrappers within wrappers are read in bounded time: beyond it the text is rough, and asks', async () => {
		for (const piece of [
			'sudo -x ',
			'bwrap ',
			'docker exec ',
			'nice -a v ',
			"env -S 'sudo x' ",
			'vim -c "!sudo x" ',
			'ssh -x v -y w ',
		]) {
			const started = process.cpuUsage()
			const { commands, broken } = await readShell(`${piece.repeat(Math.floor(60_000 / piece.length))}; gaa b`)
			const { user, system } = process.cpuUsage(started)
			expect((user + system) / 1000, piece).to.be.below(4000)
			expect(commands.map(({ words }) => words.join(' ')).includes('gaa b'), piece).to.equal(true)
			if (piece.startsWith('sudo') || piece.startsWith('bwrap')) expect(broken, piece).to.be.a('string')
		}
		expect((await readShell(`sudo nice timeout 5 env A=1 x ${'word '.repeat(12_000)}`)).broken).to.equal(null)
	})

	it('deny-12 beyond any sensible number of options the command is not known', async () => {
		const many = (count: number) => `nice ${'-a v '.repeat(count)} gaa b`
		expect(await read(many(19))).to.include('gaa b')
		expect(await read(many(30))).to.include(DYNAMIC)
		expect(await read(`bwrap ${'--a / / '.repeat(40)} gaa b`)).to.include(DYNAMIC)
		expect(await read('bwrap --a / / x')).to.not.include(DYNAMIC)
		expect(await read(`env ${'-S x '.repeat(30)}`)).to.include(DYNAMIC)
		expect(await read(`env ${'-Sx '.repeat(30)}`)).to.include(DYNAMIC)
		expect(await read(`env ${'-S x '.repeat(3)}`)).to.not.include(DYNAMIC)
		// Linear: every reading is a copy of the rest.
		const started = performance.now()
		await readShell(many(8000))
		expect(performance.now() - started).to.be.below(3000)
	})

	all('deny-12 short options in one word', [
		"su -lc 'gaa b'",
		"su -mc 'gaa b' root",
		"su -lc'gaa b'",
		"script -qfc'gaa b' f",
		"git rebase -ix 'gaa b' main",
		"git difftool -yx 'gaa b'",
		"rsync -ave 'gaa b' a h:",
		"tar -cI'gaa b' -f a x",
		"tar cIf 'gaa b' a x",
		"tar cfF a 'gaa b' x",
		"mapfile -tC 'gaa b' a",
		'fd -HIx gaa b',
		'fdfind -tfX gaa b',
	])

	all('deny-12 shells by other names, files and options', [
		...['yash', 'posh', 'lksh', 'oksh', 'rksh', 'pwsh', 'powershell', 'nu', 'xonsh', 'elvish', 'git-shell'].map(
			(name) => `${name} -c 'gaa b'`,
		),
		...['bash5', 'bash-5.2', 'ksh93', 'zsh-5.9', 'bash-static'].map((name) => `${name} -c 'gaa b'`),
		"xargs -I X bash5 -c X <<< 'gaa b'",
		...["fish -C 'gaa b'", "fish --command 'gaa b'", "fish --command='gaa b'", "fish --init-command='gaa b' -c x"],
		...['pwsh -Command gaa b', "pwsh -command 'gaa b'"],
		...["echo 'gaa b' | bash -", "echo 'gaa b' > >(cat) | bash /dev/fd/3", "bash <(echo 'gaa b')"],
		...["su nobody -s '/bin/x' -c 'gaa b'", "git shell -c 'gaa b'", 'script f gaa b', 'script -q f -- gaa b'],
	])

	it('deny-12 a shell whose first word is not known is a doubt, and so is one that su names', async () => {
		for (const text of ['x=-c; bash $x "gaa b"', 'sh "$f"'])
			expect((await readShell(text)).doubts, text).to.not.deep.equal([])
		expect(await read('su -s /bin/gaa root')).to.include('/bin/gaa')
		expect(await read('su --shell=/bin/gaa')).to.include('/bin/gaa')
	})

	all('deny-12 ssh and its like: what they run there, what they run here', [
		...['-p 22', '-i k', '-F c -l me', '-vv -NfL 1:h:2', '-o A=b', '-4'].map((options) => `ssh ${options} h gaa b`),
		...['ssh h -p 22 gaa b', 'ssh h -- gaa b', 'ssh -t h -- gaa b', 'autossh -M 0 h gaa b'],
		...['=', ' ', ' = '].map((between) => `ssh -o 'ProxyCommand${between}gaa b' h`),
		...["ssh -o 'KnownHostsCommand=gaa b' h", "scp -o ProxyCommand='gaa b' a h:", "sftp -oProxyCommand='gaa b' h"],
		...["scp -S 'gaa b' a h:", "sftp -S 'gaa b' h", "autossh -o ProxyCommand='gaa b' h", "mosh --ssh='gaa b' h"],
	])

	all('deny-12 more programs that take a command', [
		...['chronic', 'ifne', 'sem', 'env_parallel', 'timelimit', 'sshpass', 'proot', 'fakechroot', 'run0', 'daemon'].map(
			(name) => `${name} gaa b`,
		),
		...['systemd-nspawn', 'dotenv', 'watchexec', 'pnpx', 'cross-env A=1', 'lckdo f', 'envdir d', 'dtach -n s'].map(
			(start) => `${start} gaa b`,
		),
		...['abduco -n s', 'mosh h', 'mosh h --', 'bwrap --ro-bind / / --dev /dev', 'bwrap --'].map(
			(start) => `${start} gaa b`,
		),
		...['docker', 'podman', 'nerdctl', 'docker-compose', 'kubectl', 'oc', 'lxc', 'apptainer', 'singularity'].flatMap(
			(name) => [`${name} exec c gaa b`, `${name} run --rm -v a:b -w /x i gaa b`, `${name} create i gaa b`],
		),
		...["docker exec -it c sh -c 'gaa b'", 'docker compose exec c gaa b', 'kubectl exec p -c x -- gaa b'],
		...['rustup run stable gaa b', 'nvm exec 20 gaa b', 'mise exec node@20 -- gaa b', 'mise x node gaa b'],
		...['aws-vault exec p gaa b', 'nix develop -c gaa b', 'nix shell x --command gaa b'],
		...['lerna exec', 'nodenv exec', 'fnm exec', 'pixi run', 'mamba run', 'micromamba run', 'opam exec'].map(
			(start) => `${start} gaa b`,
		),
		...['dune exec', 'stack exec', 'cabal exec', 'doppler run', 'op run', 'dotenvx run'].map(
			(start) => `${start} gaa b`,
		),
		...['npm', 'pnpm', 'yarn'].map((name) => `corepack ${name} exec gaa b`),
		...['exec', 'shell', 'enter', 'develop', 'explore'].map((word) => `tool ${word} x y -- gaa b`),
		...['cmake -E env A=1 gaa b', 'cmake -E time gaa b', 'cmake -E chdir d gaa b'],
		...['find', 'gfind', 'bfs'].flatMap((name) =>
			['-exec', '-execdir', '-ok', '-okdir'].map((option) => `${name} . ${option} gaa b \\;`),
		),
		...['exec', 'EXEC', 'SYSTEM', 'shell'].map((kind) => `socat - ${kind}:'gaa b'`),
		...['nc', 'ncat', 'netcat'].flatMap((name) => [`${name} -e 'gaa b' h 1`, `${name} -c 'gaa b' h 1`]),
		...['|', '!'].flatMap((mark) => [`strace -o '${mark}gaa b' x`, `ltrace --output='${mark}gaa b' x`]),
		...["tcpdump -z 'gaa b'", "dc -e '1 !gaa b'", "pandoc --filter 'gaa b'", "pandoc -F 'gaa b'"],
		...["pandoc --pdf-engine='gaa b'", "nodemon -x 'gaa b'", "concurrently x 'gaa b'", "pee x 'gaa b'"],
		...["mispipe 'gaa b' x", "rpm --eval '%(gaa b)'", "rpm -E '%(gaa b)'", "just -c 'gaa b'", "bun exec 'gaa b'"],
		...['apt', 'apt-get'].map((name) => `${name} -o APT::Update::Pre-Invoke::='gaa b' update`),
		...['--eval', '-eval', '--execute'].map((option) => `emacs ${option} '(shell-command "gaa b")'`),
		...["fzf --preview 'gaa b'", "fzf --bind 'enter:execute(gaa b)'", "fzf --bind 'x:execute-silent(gaa b)'"],
		...["fzf --bind 'start:become(gaa b)'", "fzf --bind 'x:execute:gaa b'"],
		...["compgen -C 'gaa b'", "compgen -F 'gaa b'", "complete -W '$(gaa b)' x", "compgen -W '$(gaa b)'"],
		...["npm config set script-shell 'gaa b'", "npm config set editor='gaa b'", "npm config set viewer 'gaa b'"],
		"npm config set git='gaa b'",
		...['CC', 'CXX', 'LD', 'AR', 'RM', 'INSTALL', 'MAKE'].map((name) => `make ${name}='gaa b'`),
		...['perf record -g gaa b', 'git submodule foreach -q gaa b', "git filter-branch --setup 'gaa b'"],
		...['--access-hook', '--authors-prog', '--smtp-server', '--httpd', '--browser'].map(
			(option) => `git x ${option}='gaa b'`,
		),
	])

	all('deny-12 options that say that they hold a command, in any program', [
		...['exec', 'sh-exec', 'execute', 'command', 'cmd', 'pager', 'editor', 'program', 'askpass', 'speller'].flatMap(
			(name) => [`tool --${name} 'gaa b' x`, `tool --${name}='gaa b' x`, `tool -x-${name}='gaa b' x`],
		),
		...['viewer', 'script-shell', 'toolexec', 'run_under', 'entrypoint', 'to-cmd'].map(
			(name) => `tool --${name}='gaa b' x`,
		),
		"go build -toolexec 'gaa b' ./...",
	])

	all('deny-12 settings of git that hold a command', [
		...['guitool.x.cmd', 'difftool.x.path', 'mergetool.x.path', 'gpg.ssh.defaultKeyCommand'].map(
			(key) => `git -c ${key}='gaa b' x`,
		),
		...['core.alternateRefsCommand', 'submodule.x.update', 'trailer.x.command', 'trailer.x.cmd'].map(
			(key) => `git -c ${key}='!gaa b' x`,
		),
		...['tar.x.command', 'hook.x.command', 'sendemail.toCmd', 'sendemail.smtpServer', 'imap.tunnel'].map(
			(key) => `git -c ${key}='gaa b' x`,
		),
		...['instaweb.httpd', 'instaweb.browser'].map((key) => `git config ${key} 'gaa b'`),
	])

	const variables = [
		...['PAGER', 'GIT_PAGER', 'MANPAGER', 'EDITOR', 'GIT_SEQUENCE_EDITOR', 'VISUAL', 'FCEDIT', 'BROWSER'],
		...['GIT_ASKPASS', 'GIT_SSH', 'CVS_RSH', 'SHELL', 'GIT_SSH_COMMAND', 'GIT_EXTERNAL_DIFF', 'GIT_PROXY_COMMAND'],
		...['GIT_CONFIG_VALUE_0', 'LESSCLOSE', 'PROMPT_COMMAND', 'BASH_ALIASES[x]', 'BASH_CMDS[x]'],
	]
	all('deny-12 a variable whose value a program runs', [
		...variables.flatMap((name) => [`${name}='gaa b' x`, `${name}='gaa b'; x`, `export ${name}='gaa b'`]),
		...["LESSOPEN='|gaa b' less f", "LESSOPEN='|-gaa b' less f", "env PAGER='gaa b' man x", "sudo PAGER='gaa b' x"],
		...["GIT_CONFIG_VALUE_0='!gaa b' git x", "PROMPT_COMMAND+=';gaa b'", "env 'BASH_FUNC_x%%=() { gaa b; }' bash -c x"],
		...['PS0', 'PS1', 'PS2', 'PS3', 'PS4', 'ENV', 'BASH_ENV'].map((name) => `${name}='x$(gaa b)' bash -x`),
		...["declare PS4='\"`gaa b`'", "TAR_OPTIONS=--to-command='gaa\\ b' tar xf a", "MAKEFLAGS='SHELL=gaa\\ b' make"],
		"GNUMAKEFLAGS='SHELL=gaa\\ b' make",
		...["bash -c x PAGER='gaa b'"],
	])

	all('deny-12 an editor’s command, wherever it stands', [
		...['silent !gaa b', 'sil! !gaa b', '%!gaa b', '1,5!gaa b', 'term gaa b', ':terminal gaa b', 'te gaa b'].map(
			(text) => `vim -c '${text}'`,
		),
		...['view', 'gvim', 'rvim', 'vimdiff', 'vim.tiny', 'vim.basic'].map((name) => `${name} -c '!gaa b' f`),
		...[`vim -c "exe '!gaa b'"`, `nvim +'exe ":!gaa b"'`, "vim -ec '!gaa b'"],
	])

	all('deny-12 sed’s command without a blank, behind a flag of its address or the last line', [
		...['1egaa b', 'egaa b', '$egaa b', '/x/Iegaa b', '1,5egaa b'].map((text) => `sed '${text}' f`),
	])

	all('deny-12 code of another language: joined to its option, in other quotes, from the input', [
		`python3 -c'import os;os.system("gaa b")'`,
		`perl -e'system("gaa b")'`,
		`perl -E 'system("gaa b")'`,
		`perl -e 1 -e 'system("gaa b")'`,
		`perl '-Mstrict;system("gaa b")' -e1`,
		`perl '-mPOSIX;system("gaa b")' -e1`,
		`php -B 'passthru("gaa b");'`,
		`php -R 'passthru("gaa b");'`,
		`node -r x -e 'execSync("gaa b")'`,
		`node --print='execSync("gaa b")'`,
		`node --import 'data:text/javascript,execSync("gaa b")' x`,
		`node --import='data:text/javascript,execSync("gaa b")' x`,
		`python -m timeit -s 'os.system("gaa b")'`,
		`deno eval 'new Deno.Command("gaa b")'`,
		`python -c 'x.call("gaa b")'`,
		`python -c 'os.cmd("gaa b")'`,
		...['ipython', 'jython', 'tsx', 'ts-node', 'jruby', 'luajit'].map((name) => `${name} -c 'system("gaa b")'`),
		...['qx/gaa b/', 'qx!gaa b!', 'qx|gaa b|', 'qx<gaa b>', 'system q {gaa b}', 'exec qw[gaa b]'].map(
			(text) => `perl -e '${text}'`,
		),
		...['%x(gaa b)', '%x{gaa b}', '%x[gaa b]', '%x|gaa b|'].map((text) => `ruby -e '${text}'`),
		`python3 <<'E'\nimport os\nos.system("gaa b")\nE`,
		`python3 - <<< 'os.system("gaa b")'`,
		`echo 'os.system("gaa b")' | python3`,
		`echo 'os.system("gaa b")' | python3 /dev/stdin`,
		`python3 <(echo 'os.system("gaa b")')`,
		`awk -f - <<< 'BEGIN { system("gaa b") }'`,
		`gawk --file=/dev/stdin <<< 'BEGIN { system("gaa b") }'`,
		`gawk --source 'BEGIN { system("gaa b") }'`,
		`gawk -l x -e 'BEGIN { system("gaa b") }'`,
		`awk --assign x=1 'BEGIN { system("gaa b") }'`,
		"vim -S <(echo '!gaa b')",
		"vim -s /dev/stdin <<< '!gaa b'",
		"make -sf - <<< 'x:;gaa b'",
		"make -f <(printf 'x:\\n\\tgaa b')",
		"make -f /dev/fd/0 <<< 'x:;gaa b'",
	])

	it('deny-12 code that is read from the input is no doubt; a script of sed, text of make that is not known is one', async () => {
		for (const text of ["python3 <<'E'\nprint(1)\nE", 'curl x | python3 -m json.tool', 'python3 x.py', 'sed -f x f'])
			expect(await readShell(text), text).to.deep.include({ doubts: [] })
		for (const text of ["sed -f - f <<< '1e x'", 'sed --file=/dev/stdin f', 'sed -nf <(x) f'])
			expect((await readShell(text)).doubts, text).to.not.deep.equal([])
		expect((await readShell('make --eval "$(cat f)"')).doubts).to.not.deep.equal([])
	})

	none('deny-12 what only looks so', [
		`python3 x.py <<'E'\nos.system("gaa b")\nE`,
		`python3 -c 'print(1)' <<'E'\nos.system("gaa b")\nE`,
		`node --eval='1' <<< 'execSync("gaa b")'`,
		"NAME='gaa b' x",
		"git commit -m 'gaa b'",
		'docker ps gaa b',
		'tool x -- gaa b',
		'git checkout -- gaa b',
		'npm run y -- gaa b',
		"tool --executor 'gaa b'",
		"sed 's/egaa b/x/' f",
	])

	it('deny-12 declared lists are evaluated once more', async () => {
		for (const text of [
			"declare -a 'a=($(gaa b))'",
			"declare -A 'a=([$(gaa b)]=1)'",
			"export -a 'a=($(gaa b))'",
			"readonly -a 'a=($(gaa b))'",
			"f() { local -a 'a=($(gaa b))'; }",
			"typeset -A 'a=($(gaa b))'",
			"a=(1); declare 'a=($(gaa b))'",
			"a=(1); declare 'a+=($(gaa b))'",
			'y=\'($(gaa b))\'; declare -a a="$y"',
		]) {
			expect(await read(text), text).to.include('gaa b')
			expect(
				(await readShell(text)).doubts.some(({ grave }) => grave),
				text,
			).to.equal(true)
		}
		expect(await readShell('declare -a a=(b c)')).to.deep.include({ doubts: [] })
	})
})
