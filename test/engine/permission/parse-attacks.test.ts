// Attacks on the reading of commands: the deny rule for the inner command matches, and no allow rule does when in doubt.
import { expect } from 'chai'
import { maxShellText } from '../../../src/engine/permission/shell-words.ts'
import { bash, type Place, place } from './helpers.ts'

const deny = { deny: ['bash(touch:*)'] }

/** id, what it is about, the attack, then variants of the same kind. */
const refused: [string, string, ...string[]][] = [
	['parse-01', 'chained with && and ||', 'true && touch $M', 'false || touch $M', 'a && b && c || touch $M'],
	['parse-04', 'a single & starts another command', 'true & touch $M', 'sleep 1 & true & touch $M', 'true&touch $M'],
	[
		'parse-05',
		'a pipe into a shell',
		'printf "touch $M" | sh',
		"echo 'touch x' | bash",
		'echo touch x | sudo bash -s',
		"cat <<'E' | sh\ntouch x\nE",
	],
	['parse-07', 'a newline separates', 'true\ntouch $M', 'true\n\n  touch $M', 'true \\\n  && touch $M'],
	[
		'parse-09',
		'$(...) in quotes',
		'echo "$(touch $M)"',
		'echo ${x:-$(touch $M)}',
		'a=$(touch $M)',
		'for i in $(touch $M); do :; done',
		'case $(touch $M) in x) ;; esac',
	],
	['parse-10', 'backticks in quotes', 'echo "`touch $M`"', 'echo `echo \\`touch $M\\``', 'x=`touch $M`'],
	['parse-12', 'process substitution', 'echo x > >(touch $M); sleep 0.2', 'diff <(touch a) b', 'cat <(cat <(touch a))'],
	[
		'parse-13',
		'arithmetic with an index',
		"export M; echo $[ x='a[$(touch $M)]', x ]",
		'echo $((a[$(touch $M)]))',
		"x='a[$(touch $M)]'; ((x))",
	],
	[
		'parse-14',
		'test -v evaluates an index',
		"test -v 'a[$(touch $M)]'",
		"[[ -v 'a[$(touch $M)]' ]]",
		"[ -v 'a[`touch $M`]' ]",
		"printf -v 'a[$(touch x)]' y",
		"unset 'a[$(touch x)]'",
	],
	[
		'parse-15',
		'@P runs commands',
		'x=\'$(touch $M)\'; echo "${x@P}"',
		"x='`touch $M`'; : ${x@P}",
		'x=\'$(touch a)\'; y="${x@P}"',
	],
	[
		'parse-16',
		'a here-document with a substitution',
		'cat <<E\n$(touch $M)\nE',
		'cat <<-E\n\t`touch $M`\n\tE',
		'cat <<< "$(touch $M)"',
	],
	[
		'parse-17',
		'a here-document fed to a shell',
		"sh <<'E'\ntouch $M\nE",
		"bash -s <<'E'\ntouch $M\nE",
		"sh <<< 'touch $M'",
		"{ sh; } <<'E'\ntouch x\nE",
	],
	['parse-19', 'ANSI-C quotes', '$\'\\x74ouch\' "$M"', "$'\\164ouch' a", "$'to\\u0075ch' a"],
	['parse-20', 'quotes in the name', 'to""uch $M', "'touch' $M", 't"ouc"h $M'],
	['parse-21', 'a backslash in the name', 't\\ouch $M', '\\touch $M', 'to\\\nuch $M'],
	['parse-25', '$IFS for blanks', 'touch${IFS}$M', 'touch$IFS$M', 'true;touch${IFS}x'],
	['parse-27', 'eval', 'eval "tou""ch $M"', "eval -- 'touch x'", 'eval touch x', 'eval "eval \'touch x\'"'],
	[
		'parse-28',
		'bash -c',
		'bash -c "touch $M"',
		"sh -xec 'touch a'",
		"bash --norc -c 'true; touch a'",
		'bash -c "bash -c \'touch a\'"',
	],
	[
		'parse-30',
		'wrappers with options',
		'timeout -s KILL 5 nice -n 10 stdbuf -o L touch $M',
		'nohup touch a',
		'xargs -n 1 touch < list',
		'ionice -c 3 setsid touch a',
		'sudo -u root touch a',
	],
	['parse-31', 'env and VAR=', 'X=1 env -u Y touch $M', 'env A=1 B=2 touch $M', 'X=1 touch $M', 'sudo X=1 touch a'],
	[
		'parse-32',
		'command and builtin',
		'command touch $M',
		'builtin command touch a',
		'exec touch a',
		'command -p touch a',
	],
	['parse-35', 'trap', 'trap "touch $M" EXIT', "trap 'touch a' INT TERM", "trap -- 'touch a' 0"],
	['parse-38', 'a quote in a comment', "echo ok # it's\ntouch $M # '", 'echo ok # "\ntouch $M # "', "# it's\ntouch a"],
	[
		'parse-39',
		'no limit on the number of commands',
		`${': ; '.repeat(60)}touch $M`,
		`${': ; '.repeat(5000)}touch $M`,
		`${'(: );'.repeat(300)}touch a`,
	],
	[
		'parse-46',
		'another path to the program',
		'/proc/self/root/usr/bin/touch $M',
		'/usr/bin/touch a',
		'../../../usr/bin/touch a',
	],
	[
		'parse-47',
		'the loader or busybox starts it',
		'/lib64/ld-linux-x86-64.so.2 /usr/bin/touch $M',
		'busybox touch a',
		'/lib/ld-musl-x86_64.so.1 --library-path /x /bin/touch a',
	],
]

const more: [string, ...string[]][] = [
	[
		'functions, groups, loops and coprocesses',
		'f() { touch a; }; f',
		'{ touch a; }',
		'(touch a)',
		'if touch a; then :; fi',
		'while ! touch a; do :; done',
		'coproc touch a',
		'time touch a',
		'! touch a',
	],
	['aliases, callbacks and completion', "alias x='touch a'", "mapfile -C 'touch a' x", 'bind -x \'"a": touch a\''],
	['case of the name and .exe', 'TOUCH a', 'touch.exe a'],
]

describe('permission: attacks on the reading of a command', () => {
	let at: Place
	before(async () => {
		at = await place()
	})
	after(() => at.close())

	for (const [id, title, ...commands] of refused)
		it(`${id} ${title}: the deny rule for the inner command matches`, async () => {
			for (const command of commands) {
				const decision = await bash(at, command, deny)
				expect(decision.decision, command).to.equal('deny')
				expect(decision.rule?.text, command).to.equal('bash(touch:*)')
				// The negative control: without the rule it is not refused.
				expect((await bash(at, command)).decision, command).not.to.equal('deny')
			}
		})

	for (const [title, ...commands] of more)
		it(`${title}: the deny rule matches`, async () => {
			for (const command of commands) expect((await bash(at, command, deny)).decision, command).to.equal('deny')
		})

	it('parse-08 a carriage return is no blank: it asks with a warning and never matches an allow rule', async () => {
		for (const command of ['TZ=UTC\recho touch; touch $M', 'echo a\rb', 'npm test\r']) {
			const decision = await bash(at, command, { allow: ['bash(echo:*)', 'bash(npm test)', 'bash'] })
			expect(decision.decision, command).to.equal('ask')
			expect(decision.warning, command).to.include('hidden')
			expect(decision.lastingRule, command).to.equal(undefined)
		}
		expect((await bash(at, 'TZ=UTC\recho touch; touch $M', deny)).decision).to.equal('deny')
	})

	it('parse-23 a pattern as the name of a command asks', async () => {
		for (const command of ['/usr/bin/tou?h $M', '/usr/bin/t*h a', '/usr/bin/[t]ouch a']) {
			expect((await bash(at, command, deny)).decision, command).to.equal('ask')
			expect((await bash(at, command, { allow: ['bash'] })).decision, command).to.equal('ask')
		}
		expect((await bash(at, 'ls /usr/bin/t*h')).decision).to.equal('allow')
	})

	it('parse-36 a variable before a command is seen: an allow rule does not match', async () => {
		const lists = { allow: ['bash(bash:*)', 'bash(npm test)', 'bash(true)'] }
		const host = { sandboxed: false }
		expect((await bash(at, 'npm test', lists, host)).decision).to.equal('allow')
		for (const command of [
			'BASH_ENV=$R/rc bash -c true',
			'PATH=/evil npm test',
			'LD_PRELOAD=x npm test',
			'PATH=/evil; npm test',
			'export PATH=/evil; npm test',
		])
			expect((await bash(at, command, lists, host)).decision, command).to.equal('ask')
	})

	it('parse-30 parse-31 an allow rule does not look through wrappers or variables', async () => {
		const lists = { allow: ['bash(touch:*)'] }
		const host = { sandboxed: false }
		expect((await bash(at, 'touch a', lists, host)).decision).to.equal('allow')
		for (const command of [
			'timeout 5 touch a',
			'env touch a',
			'X=1 touch a',
			'sudo touch a',
			"bash -c 'touch a'",
			'command touch a',
			'/usr/bin/touch a',
			'to""uch a',
		])
			expect((await bash(at, command, lists, host)).decision, command).to.equal('ask')
		// And an allowed wrapper does not allow what it wraps.
		expect((await bash(at, 'timeout 5 rm a', { allow: ['bash(timeout:*)'] }, host)).decision).to.equal('ask')
	})

	it('parse-40 parse-41 parse-43 a redirection is a write: an allowed command does not cover its target', async () => {
		const lists = { allow: ['bash(echo:*)', 'bash(exec:*)', 'bash(cat:*)'] }
		for (const sandboxed of [true, false]) {
			for (const command of [
				`echo x > ${at.home}/m`,
				`echo x >| ${at.home}/m`,
				`exec 5<>${at.home}/m`,
				`echo x >> ~/.bashrc`,
				`echo x &> ${at.home}/m`,
				`echo x >& ${at.home}/m`,
				`cat a 2>../m`,
			]) {
				const decision = await bash(at, command, lists, { sandboxed })
				expect(decision.decision, command).to.equal('ask')
				expect(decision.reason, command).to.include('outside')
			}
			for (const command of ['echo x > m', 'echo x 2>&1 >/dev/null', 'echo x > sub/m'])
				expect((await bash(at, command, lists, { sandboxed })).decision, command).to.equal('allow')
		}
		// An unknown target on the host asks; a session's answer to this very command covers it.
		expect((await bash(at, 'echo x > $M', lists, { sandboxed: false })).decision).to.equal('ask')
		expect(
			(await bash(at, 'cd / && echo x > m', { allow: ['bash(echo:*)', 'bash(cd:*)'] }, { sandboxed: false })).decision,
		).to.equal('ask')
	})

	it('parse-44 a read redirection of a secret is refused', async () => {
		for (const command of [
			'cat < $HOME/.ssh/id_rsa',
			'cat < ~/.ssh/id_rsa',
			`cat < ${at.home}/.aws/credentials`,
			'cat "$HOME/.ssh/id_rsa"',
			'base64 < ../.ssh/id_ed25519',
		])
			expect((await bash(at, command, { allow: ['bash'] })).decision, command).to.equal('deny')
		expect((await bash(at, 'cat < README.md')).decision).to.equal('allow')
	})

	it('parse-48 what does not parse asks, whatever is allowed', async () => {
		for (const command of ['echo "a ; touch $M', "echo 'a", 'echo $(touch a', 'if true; then echo', 'echo a )']) {
			expect((await bash(at, command, { allow: ['bash', 'bash(echo:*)'] })).decision, command).to.equal('ask')
			expect(
				(await bash(at, command, { fixed: ['bash'] }, { keys: new Set([`bash:${command}`]) })).decision,
				command,
			).to.equal('ask')
		}
		expect((await bash(at, 'echo "a ; touch M"', deny)).decision).to.equal('allow')
	})

	it('parse-49 a NUL byte is refused with a clear reason', async () => {
		for (const command of ['touch a\0; touch $M', '\0', 'echo a\0b']) {
			const decision = await bash(at, command, { allow: ['bash'] })
			expect(decision.decision).to.equal('deny')
			expect(decision.reason).to.include('NUL')
		}
	})

	it('over 64 KB deny rules still apply, and without one it asks', async () => {
		const long = `echo ${'x '.repeat(maxShellText / 2)}`
		expect((await bash(at, long, { allow: ['bash'] })).decision).to.equal('ask')
		for (const tail of ['; touch a', '\nsudo touch a', ' && X=1 touch a', ' $(touch a)', '; "touch" a'])
			expect((await bash(at, long + tail, deny)).decision, tail).to.equal('deny')
	})

	it('what is known only at the run could be the denied command: it asks, and is plain where no rule needs it', async () => {
		for (const command of [
			'$CMD a',
			'"$X" a',
			'eval "$X"',
			'curl x | sh',
			'bash -c "$X"',
			'X=touch; $X a',
			'source /dev/stdin',
			'{touch,$M}',
		]) {
			expect(
				(await bash(at, command, { ...deny, allow: ['bash(eval:*)', 'bash(sh)', 'bash(curl:*)'] })).decision,
				command,
			).to.equal('ask')
			expect((await bash(at, command)).decision, command).to.equal('allow')
			expect((await bash(at, command, {}, { sandboxed: false })).decision, command).to.equal('ask')
		}
		// An unknown argument that could make a denied form.
		expect((await bash(at, 'git $X', { deny: ['bash(git push:*)'] })).decision).to.equal('ask')
		expect((await bash(at, 'git status $X', { deny: ['bash(git push:*)'] })).decision).to.equal('allow')
	})

	it('reads deep and hostile texts quickly and without a throw', async () => {
		const texts = [
			'('.repeat(2000),
			'$('.repeat(1000),
			'`'.repeat(999),
			`bash -c '${'bash -c "'.repeat(50)}`,
			`${'eval '.repeat(500)}touch a`,
			'{a,b}'.repeat(200),
			'\ud800',
		]
		const began = performance.now()
		expect((await bash(at, `echo ${'$X '.repeat(15_000)}`, { deny: ['bash(git * push * x)'] })).decision).to.equal(
			'allow',
		)
		for (const text of texts)
			expect((await bash(at, text, { deny: ['bash(touch:*)', 'bash(git * push * x)'] })).decision).not.to.equal('allow')
		expect(performance.now() - began).to.be.below(8000)
	})
})
