// Each program that starts another, each of its options, each key of git's: the command inside is seen. One line for each way.
import { expect } from 'chai'
import { DYNAMIC, readShell } from '../../../src/engine/permission/shell-words.ts'

/** Whether `gaa b` is among the commands that a text may run. */
const sees = async (text: string): Promise<boolean> =>
	(await readShell(text)).commands.some(({ words }) => words.length === 2 && words[0] === 'gaa' && words[1] === 'b')

const all = (title: string, texts: readonly string[]) =>
	it(title, async () => {
		for (const text of texts) expect(await sees(text), text).to.equal(true)
	})

/** Programs that take a command after their options: words before it, and options that take a word. */
const wrappers: Record<string, [before: string, options: string]> = {
	sudo: ['', '-u -g -h -p -C -r -t -T -U -D -R --user --group --host --chdir'],
	doas: ['', '-u -C'],
	env: ['', '-u -C --unset --chdir'],
	command: ['', ''],
	builtin: ['', ''],
	exec: ['', '-a'],
	nohup: ['', ''],
	setsid: ['', ''],
	nice: ['', '-n --adjustment'],
	ionice: ['', '-c -n --class --classdata'],
	chrt: ['1', ''],
	taskset: ['1', ''],
	stdbuf: ['', '-i -o -e --input --output --error'],
	timeout: ['1', '-s -k --signal --kill-after'],
	gtimeout: ['1', '-s -k --signal --kill-after'],
	time: ['', '-f -o --format --output'],
	xargs: ['', '-I -L -n -P -s -d -E -a --max-args --max-procs --replace --delimiter --arg-file'],
	parallel: ['', '-j -N -n -a --jobs'],
	strace: ['', '-e -o -s -E -u'],
	ltrace: ['', '-e -o -s'],
	chroot: ['/x', ''],
	unshare: ['', '-S -G'],
	nsenter: ['', '-t'],
	flock: ['f', '-w -E'],
	caffeinate: ['', '-t -w'],
	unbuffer: ['', ''],
	fakeroot: ['', ''],
	proxychains: ['', ''],
	proxychains4: ['', ''],
	torsocks: ['', ''],
	'xvfb-run': ['', '-n -s -e'],
	'dbus-run-session': ['', ''],
	'systemd-run': ['', '-u -p -E --unit --property --setenv'],
	firejail: ['', ''],
	busybox: ['', ''],
	toybox: ['', ''],
	rlwrap: ['', ''],
	entr: ['', ''],
	npx: ['', '-p --package'],
	bunx: ['', ''],
	uvx: ['', '--from --with'],
	runuser: ['', '-u -g'],
	winpty: ['', ''],
	arch: ['', ''],
	setarch: ['i787', ''],
	prlimit: ['', '-p -o --pid --output'],
	setpriv: [
		'',
		'--reuid --regid --ruid --euid --rgid --egid --groups --securebits --pdeathsig --ptracer --selinux-label --apparmor-profile --inh-caps --ambient-caps --bounding-set --landlock-access --landlock-rule --seccomp-filter',
	],
	choom: ['', '-n -p --adjust --pid'],
	linux32: ['', ''],
	linux64: ['', ''],
	i386: ['', ''],
	i486: ['', ''],
	i586: ['', ''],
	i686: ['', ''],
	x86_64: ['', ''],
	uname26: ['', ''],
	pkexec: ['', '--user'],
	valgrind: ['', ''],
	numactl: ['', '-C -m -N -i -p -P -l'],
	cpulimit: ['', '-l -p -e -P'],
	faketime: ['now', '-f --exclude-monotonic'],
	eatmydata: ['', ''],
	bwrap: ['', ''],
	'aa-exec': ['', '-p -n --profile --namespace'],
	'systemd-inhibit': ['', ''],
	'ssh-agent': ['', '-a -t -E'],
	'dbus-launch': ['', ''],
	cgexec: ['', '-g'],
	chpst: ['', '-u -U -e -/ -n -m -d -o -p -f -c -r -t -l -L -b'],
	softlimit: ['', ''],
	setuidgid: ['me', ''],
	gosu: ['me', ''],
	'su-exec': ['me', ''],
	tini: ['', ''],
	'dumb-init': ['', ''],
	setlock: ['f', ''],
	torify: ['', ''],
	tsocks: ['', ''],
	coproc: ['', ''],
	noglob: ['', ''],
	nocorrect: ['', ''],
	daemonize: ['', '-c -e -o -p -u -l -E'],
	'perf stat': ['', '-e -o -p -F -c -C -r'],
	'perf record': ['', ''],
	'perf trace': ['', ''],
	screen: ['', '-S -t -c -T -p'],
	'ld-linux-x86-64.so.2': ['', '--library-path --preload --argv0 --audit'],
	'ld-musl-x86_64.so.1': ['', ''],
	'ld.so': ['', ''],
	'ld64.so.1': ['', ''],
}

describe('permission: commands inside commands', () => {
	it('a command after a wrapper and its options is seen', async () => {
		for (const [name, [before, options]] of Object.entries(wrappers)) {
			// By its path: `time` alone is a word of the shell.
			const program = `/usr/bin/${name}`
			for (const text of [
				`${program} ${before} gaa b`,
				`${program} --unheard ${before} gaa b`,
				`${program} --unheard v ${before} gaa b`,
				...options
					.split(' ')
					.filter(Boolean)
					// Twice: of one option that is not known both readings count, of two not all.
					.map((option) => `${program} ${option} v ${option} v ${before} gaa b`),
			])
				expect(await sees(text), text).to.equal(true)
			// The word that an option takes is no command.
			for (const option of options.split(' ').filter(Boolean)) {
				const text = `${program} ${option} gaa ${before} x y`
				const { commands } = await readShell(text)
				expect(
					commands.map(({ words }) => words[0]),
					text,
				).to.not.include('gaa')
			}
		}
		// What stands before the command may be a variable.
		for (const text of [
			'sudo A=1 gaa b',
			'doas A=1 B=2 gaa b',
			'env -i A=1 gaa b',
			'env -- A=1 gaa b',
			'sudo -- gaa b',
			'sudo A=1 -u me gaa b',
		])
			expect(await sees(text), text).to.equal(true)
	})

	all('a command after a tool’s sub-command is seen', [
		...['npm exec', 'npm x', 'pnpm exec', 'pnpm dlx', 'yarn exec', 'yarn dlx', 'bun x', 'uv run', 'poetry run'].map(
			(start) => `${start} gaa b`,
		),
		...['pipenv run', 'pipx run', 'pdm run', 'hatch run', 'rye run', 'conda run', 'bundle exec', 'rbenv exec'].map(
			(start) => `${start} gaa b`,
		),
		...['pyenv exec', 'mise exec', 'mise x', 'asdf exec', 'rustup run', 'devbox run'].map((start) => `${start} gaa b`),
		'npm --quiet exec --yes gaa b',
		'npm exec -- gaa b',
	])

	all('a shell’s text is seen, whatever stands before it', [
		...['sh', 'bash', 'dash', 'zsh', 'ksh', 'mksh', 'ash', 'fish', 'rbash', 'csh', 'tcsh'].map(
			(shell) => `${shell} -c 'gaa b'`,
		),
		"bash -lc 'gaa b'",
		"bash -euo pipefail -c 'gaa b'",
		"bash -c -o pipefail 'gaa b'",
		"bash -O extglob -c 'gaa b'",
		"bash +x -c 'gaa b'",
		"bash --posix -c 'gaa b'",
		"bash --rcfile f -c 'gaa b'",
		"bash --init-file f -c 'gaa b'",
		"bash -c 'gaa b' name arg",
		"sh -c '[[ a ]] && gaa b'",
		"sh -c 'x &>y gaa b'",
		"sh -c '((x); gaa b)'",
		'sh -c "echo \\$\'a\' ; gaa b"',
	])

	all('a shell that reads its input is given what a pipe holds', [
		"echo 'gaa b' | bash",
		"echo 'gaa b' | bash -s x",
		"echo 'gaa b' | bash -s -- -c x",
		"echo 'gaa b' | bash /dev/stdin",
		"echo 'gaa b' | bash /dev/fd/0",
		"echo 'gaa b' | bash /proc/self/fd/0",
		"echo 'gaa b' | source /dev/stdin",
		"echo 'gaa b' | . /proc/self/fd/0",
		"printf 'gaa b\\n' | sh",
		"cat <<< 'gaa b' | sh",
		"print 'gaa b' | zsh",
		'echo gaa b | sh',
		'sh <<E\ngaa b\nE',
		"sh <<< 'gaa b'",
		"printf 'all:\\n\\tgaa b\\n' | make -f -",
		"printf 'all:\\n\\tgaa b\\n' | make --file=-",
		"printf 'all:\\n\\t@gaa b\\n' | make --makefile /dev/stdin",
		"echo '!gaa b' | ed f",
		"echo '!gaa b' | ex f",
		"echo 'gaa b' | at now",
		"echo 'gaa b' | batch",
		"echo 'gaa b' | sed s/x/y/e",
		"echo 'gaa b' | sed e",
		"echo '.shell gaa b' | sqlite3",
		"echo '.system gaa b' | sqlite3 db",
	])

	all('a command that xargs or parallel reads, or puts together, is seen', [
		...['', '-r ', '-n 1 ', '-0rn 1 ', '--max-args 1 ', '--max-procs 1 ', '--max-chars 9 ', '--delimiter x '].map(
			(options) => `echo 'gaa b' | xargs ${options}env`,
		),
		"echo 'gaa b' | xargs --arg-file f env",
		"echo 'gaa b' | xargs sh",
		"echo 'gaa b' | xargs nice -n 3",
		"echo 'gaa b' | xargs -I X sh -c X",
		"echo 'gaa b' | xargs -J X sh -c X",
		"echo 'gaa b' | xargs --replace=X sh -c X",
		"echo 'gaa b' | xargs -i sh -c {}",
		"echo 'gaa b' | xargs --replace -r sh -c {}",
		"echo 'gaa b' | xargs -I X X",
		...['eval X', 'su -c X', 'ssh h X', 'env X', 'sudo X'].map((run) => `echo 'gaa b' | xargs -I X ${run}`),
		"echo 'gaa b' | parallel",
		...['-j', '-N', '-n', '-a', '--jobs'].map((option) => `echo 'gaa b' | parallel ${option} 4 ${option} 4`),
		"parallel ::: 'gaa b'",
		"parallel sh -c {} ::: 'gaa b'",
	])

	all('a command in an option or a word of a program is seen', [
		...['eval gaa b', "eval -- 'gaa b'", "trap 'gaa b' EXIT", "trap -- 'gaa b' 0", "alias x='gaa b'"],
		...["mapfile -C 'gaa b' x", "readarray -C 'gaa b' x", "complete -C 'gaa b' x", "complete -F 'gaa b' x"],
		...['bind -x \'"\\C-x": gaa b\'', "env -S 'gaa b'", "env --split-string='gaa b'", "env '-vSgaa b'"],
		...["su -c 'gaa b'", "su --command 'gaa b' me", "su --session-command='gaa b'"],
		...["runuser -c 'gaa b'", "runuser --command='gaa b'", "script -c 'gaa b'", "script --command='gaa b' f"],
		...["script -qc 'gaa b' f", "flock f -c 'gaa b'", "flock --command='gaa b' f", 'watch gaa b'],
		...['watch -n 2 -n 2 gaa b', 'watch --interval 2 --interval 2 gaa b', "hyperfine -w 3 'gaa b'"],
		...["nix-shell --run 'gaa b'", "nix-shell --command 'gaa b'", 'ssh host gaa b'],
		...['Proxy', 'Local', 'Remote'].map((what) => `ssh -o ${what}Command='gaa b' host`),
		...["npm exec -c 'gaa b'", "npm exec --call='gaa b'", "npx -c 'gaa b'", "npx --call 'gaa b'"],
		...['-exec', '-execdir', '-ok', '-okdir'].map((option) => `find . ${option} gaa b \\;`),
		...['fd', 'fdfind'].flatMap((name) =>
			['-x', '-X', '--exec', '--exec-batch'].map((option) => `${name} x ${option} gaa b`),
		),
		...["sed '1e gaa b' f", "gsed -n '1e gaa b' f", "sed -e p -e '1e gaa b'"],
		"sed --expression=p --expression='1e gaa b'",
		...['awk', 'gawk', 'mawk', 'nawk'].map((name) => `${name} 'BEGIN { system("gaa b") }'`),
		`awk -v x=1 '{ print | "gaa b" }' f`,
		...["man -P 'gaa b' x", "man --pager='gaa b' x", "man -H'gaa b' x", "man --html='gaa b' x"],
		...["rg --pre='gaa b' x", "rg --hostname-bin 'gaa b' x", "rsync -e 'gaa b' a b", "rsync --rsh='gaa b' a b"],
		...["rsync --rsync-path='gaa b' a b", "sort --compress-program='gaa b' f", "zip -TT 'gaa b' a.zip f"],
		...["zip a.zip --unzip-command='gaa b' f", "less '+!gaa b' f"],
		...['vim', 'vi', 'nvim', 'ex'].map((name) => `${name} -c '!gaa b' f`),
		...["vim --cmd '!gaa b'", "vim '+!gaa b' f", "vim -c ':r !gaa b'", "vim -c 'read !gaa b'", "vim -c 'w !gaa b'"],
		...["vim -c 'write !gaa b'", `vim -c 'call system("gaa b")'`],
		...['tar', 'gtar', 'bsdtar'].map((name) => `${name} --checkpoint-action=exec='gaa b' -cf a b`),
		...['--to-command', '--use-compress-program', '--rsh-command', '--info-script', '--new-volume-script'].map(
			(option) => `tar ${option}='gaa b' -xf a`,
		),
		...["tar --rmt-command='gaa b' -xf a", "tar -I 'gaa b' -xf a", "tar -F 'gaa b' -xf a"],
		...["split --filter='gaa b' f", "csplit --filter 'gaa b' f", "sg -c 'gaa b' group", "sg group 'gaa b'"],
		...[
			"newgrp -c 'gaa b'",
			"tmux new 'gaa b'",
			"capsh -- -c 'gaa b'",
			'capsh --keep=1 == -c "gaa b"',
			'setarch gaa b',
		],
		...['--exec', '-x', '--startas', '-a'].map((option) => `start-stop-daemon -S ${option} gaa -- b`),
		...['spawn', 'exec', 'system'].map((word) => `expect -c '${word} gaa b'`),
		...['psql -c', 'mysql -e', 'mariadb -e', 'sqlite3 db'].map((start) => `${start} '\\! gaa b'`),
		...["mysql -e 'system gaa b'", "sqlite3 db '.shell gaa b'", "sqlite3 db '.sh gaa b'", "sqlite3 db '.once |gaa b'"],
		`psql -c "copy t from program 'gaa b'"`,
		...['-ex', '-iex', '-eval-command', '--eval-command', '--init-eval-command', '-o', '-O', '--one-line'].map(
			(option) => `gdb ${option} '!gaa b'`,
		),
		...["gdb --ex '!gaa b'", "gdb --iex '!gaa b'", "gdb -ex='!gaa b'", "gdb -ex 'shell gaa b'", "gdb -ex 'she gaa b'"],
		...["lldb -o 'platform shell gaa b'", "gdb -ex 'pipe info | gaa b'", "gdb -ex 'make gaa b'", 'gdb --args gaa b'],
		...['gdb -args gaa b', 'lldb -- gaa b', `gdb -ex 'python os.system("gaa b")'`],
		...["make --eval='$(shell gaa b)'", "make -E 'x:;gaa b'", "gmake --eval='x:\n\tgaa b'", "make 'X=$(shell gaa b)'"],
		...["make 'X!=gaa b'", "make 'SHELL=gaa b'"],
	])

	all('a command in the code of another language is seen', [
		...['python', 'python3.12', 'pypy3', 'bun', 'perl', 'ruby', 'php', 'lua', 'tclsh', 'osascript', 'Rscript'].map(
			(name) => `${name} -e 'system("gaa b")'`,
		),
		...["node -e 'x.exec(`gaa b`)'", "nodejs -e 'system(`gaa b`)'", "deno eval 'system(`gaa b`)'"],
		...['-c', '-e', '-r', '-ne', '--eval', '--print', '--command', '-p', '-pe'].map(
			(option) => `node ${option} 'system("gaa b")'`,
		),
		`node --eval='system("gaa b")'`,
		...['system', 'exec', 'popen', 'spawn', 'subprocess.call', 'run', 'open', 'Process.new'].map(
			(word) => `python -c '${word}("gaa b")'`,
		),
		...["perl -e 'print qx(gaa b)'", "ruby -e 'print `gaa b`'", "perl -e 'exec q{gaa b}'", "perl -e 'exec qw[gaa b]'"],
		`python -c "subprocess.run(['gaa', 'b'])"`,
		`python -c "exec('gaa b')"`,
		String.raw`python -c "exec('gaa \'b\'')"`,
	])

	const keys = [
		...['pager', 'editor', 'sshCommand', 'fsmonitor', 'askPass', 'gitProxy', 'hooksPath'].map((key) => `core.${key}`),
		...['pager.log', 'alias.x', 'sequence.editor', 'diff.external', 'diff.x.command', 'diff.x.textconv'],
		...['merge.x.driver', 'filter.x.clean', 'filter.x.smudge', 'filter.x.process', 'difftool.x.cmd', 'mergetool.x.cmd'],
		...['credential.helper', 'credential.https://h.helper', 'gpg.program', 'gpg.ssh.program', 'remote.x.uploadpack'],
		...['remote.x.receivepack', 'interactive.diffFilter', 'browser.x.cmd', 'man.x.cmd', 'uploadpack.packObjectsHook'],
		...['init.templateDir', 'include.path', 'includeIf.gitdir:x.path'],
	]
	all('a command that a setting of git’s names is seen', [
		...keys.map((key) => `git -c ${key}='gaa b' log`),
		"git clone --config core.editor='gaa b' x",
		"git config core.editor 'gaa b'",
	])

	all('a command in an option of git’s is seen', [
		...['--upload-pack', '--receive-pack', '--exec', '--open-files-in-pager', '--extcmd', '--exec-path'].map(
			(option) => `git x ${option}='gaa b' y`,
		),
		...["git archive --upload-archive='gaa b' x", "git grep -O'gaa b' x", "git rebase -x 'gaa b' main"],
		...["git difftool -x 'gaa b'", "git clone -u 'gaa b' x", "git ls-remote -u 'gaa b' x", "git clone 'ext::gaa b'"],
		...['tree', 'index', 'msg', 'env', 'parent', 'commit', 'tag-name'].map(
			(what) => `git filter-branch --${what}-filter 'gaa b'`,
		),
		...["git submodule foreach 'gaa b'", 'git submodule foreach --recursive gaa b', 'git bisect run gaa b'],
	])

	it('what only a program’s words hold is no command', async () => {
		for (const text of [
			"command -v 'gaa b'",
			'command -v gaa b',
			'command -pv gaa b',
			'python -c \'print("gaa b")\'',
			'find . -name gaa b',
			'bash x.sh gaa b',
			'git log gaa b',
			'git config core.bare gaa',
			"echo 'gaa b' | cat",
			'awk \'{ print "gaa b" }\'',
		])
			expect(await sees(text), text).to.equal(false)
	})

	it('words that run nothing leave nothing behind: neither a doubt nor an empty command', async () => {
		for (const text of [
			'bash x.sh',
			'sh -c',
			'sudo',
			'env A=1',
			'npm exec',
			'git bisect run',
			'source ./x',
			'make -f x',
		])
			expect(await readShell(text), text).to.deep.include({ doubts: [], broken: null })
		// After -- nothing is guessed.
		expect((await readShell('nice -- gaa b')).commands.map(({ words }) => words.join(' '))).to.deep.equal([
			'nice -- gaa b',
			'gaa b',
		])
		for (const text of ['sudo', 'npm exec', 'git bisect run', 'gdb'])
			expect((await readShell(text)).commands.length, text).to.equal(1)
	})

	it('what loads code or runs later is a doubt', async () => {
		const grave = async (text: string) => (await readShell(text)).doubts.some((doubt) => doubt.grave)
		for (const text of ['enable -f ./x.so y', 'crontab f', 'crontab -', 'env g*a b', 'nice gaa? b', 'nohup [g]aa b'])
			expect(await grave(text), text).to.equal(true)
		for (const text of ['enable -n test', 'env [[ a', 'env gaa *']) expect(await grave(text), text).to.equal(false)
		expect((await readShell('hash -p ./gaa ls')).commands.map(({ words }) => words.join(' '))).to.include('./gaa')
	})

	it('env splits a text by rules of its own', async () => {
		const inner = async (text: string) => (await readShell(text)).commands.map(({ words }) => words.join('|'))
		for (const [text, ...wanted] of [
			['env -S "gaa (a"', 'gaa|(a'],
			["env -S 'gaa;b c'", 'gaa;b|c'],
			[`env -S 'gaa "b c;d" e'`, 'gaa|b c;d|e'],
			[`env -S "gaa 'b c' d"`, 'gaa|b c|d'],
			// No shell could read this one.
			[`env -S 'gaa (x "b c" e'`, 'gaa|(x|b c|e'],
			[String.raw`env -S "gaa 'b\'c d' e"`, "gaa|b'c d|e"],
			["env -S'gaa x' y", 'gaa|x|y'],
			["env -iS 'gaa x' y", 'gaa|x|y'],
			["env --split-string='gaa x' y", 'gaa|x|y'],
			["env --split 'gaa x' y", 'gaa|x|y'],
			["env -S 'A=1 -u B gaa x'", 'gaa|x'],
			[String.raw`env -S 'gaa\_x\ty "a\_b" # no'`, 'gaa|x\ty|a b'],
			["env -S 'gaa \\cx' y", 'gaa|y'],
			[String.raw`env -S '-S"gaa\_x"'`, 'gaa|x'],
		] as const)
			for (const one of wanted) expect(await inner(text), text).to.include(one)
	})

	it('a case after time in a substitution, which bash misreads, is never sure', async () => {
		const unsure = async (text: string) => (await readShell(text)).doubts.some(({ grave }) => grave)
		const heredoc = "cat <<'E'\n`gaa`\nE\n"
		expect(await unsure(`echo "$(time { case a in a) ${heredoc};; esac\n})"`)).to.equal(true)
		expect(await unsure(`echo \${X:-$(time { case a in a) ${heredoc};; esac\n})}`)).to.equal(true)
		expect(await unsure(`echo "$(case a in (a) ${heredoc};; esac\n)"`)).to.equal(false)
		expect(await unsure('time { case a in a) b;; esac; }')).to.equal(false)
	})

	it('commands that bash joins behind a here-document in a substitution are never sure', async () => {
		const unsure = async (text: string) => (await readShell(text)).doubts.some(({ grave }) => grave)
		for (const text of [
			'echo "$(cat <<E && a;b x\nh\nE\n)"',
			'echo $(cat <<E; a;b x\nh\nE\n)',
			'cat <(if cat <<E\nh\nE\nthen a;b x; fi)',
			'x=$(case a in *) cat <<-E\n\th\n\tE\n;;& *) a; b x;; esac)',
		])
			expect(await unsure(text), text).to.equal(true)
		for (const text of [
			'git commit -m "$(cat <<\'EOF\'\none; two\nEOF\n)"',
			'echo "$(cat <<E | sed s/a/b/\nh\nE\n)"',
			'cat <<E; a; b x\nh\nE\n',
			'cat <<E\n$(a; b)\nE',
			'echo "$(a; b)"; cat <<E\nh\nE\n',
		])
			expect(await unsure(text), text).to.equal(false)
	})

	it('a process substitution with text at its sides is one word', async () => {
		const words = async (text: string) =>
			(await readShell(text)).commands.map((one) => one.words.map((word) => word.replaceAll(DYNAMIC, '…')))
		expect(await words('gaa <(b)c d')).to.deep.include(['gaa', '…c', 'd'])
		expect(await words('gaa x<(b) d')).to.deep.include(['gaa', 'x…', 'd'])
		expect(await words('gaa a<(b)c>(d)e')).to.deep.include(['gaa', 'a…c…e'])
		expect(await words('gaa <(b) c')).to.deep.include(['gaa', '…', 'c'])
	})

	it('a character that means something to the reader splits no word; a line that goes on behind a $ is never sure', async () => {
		const read = async (text: string) => {
			const { commands, doubts } = await readShell(text)
			return [commands.map((one) => one.words.length), doubts.some(({ grave }) => grave)]
		}
		expect(await read("gaa b$'\\1'c d")).to.deep.equal([[3], false])
		expect(await read('gaa b\u0001c "d\u0001e"')).to.deep.equal([[3], false])
		for (const text of ['gaa $\\\n"b"', "gaa $\\\n'b'", 'gaa $\\\n{HOME}'])
			expect((await read(text))[1], text).to.equal(true)
		expect((await read('gaa \\\n b'))[1]).to.equal(false)
	})

	it('an empty alternative of braces is no word', async () => {
		const words = async (text: string) => (await readShell(text)).commands[0]!.words
		expect(await words('{gaa,} x')).to.deep.equal(['gaa', 'x'])
		expect(await words('gaa {,b} ""')).to.deep.equal(['gaa', 'b', ''])
	})
})
