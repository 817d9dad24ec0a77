// Ways to start a program, to name a file and to write one that rules must see: loops, short options, starters, $PWD.
import { mkdir } from 'node:fs/promises'
import { expect } from 'chai'
import { bash, type Place, place } from './helpers.ts'

const host = { sandboxed: false }

describe('permission: starters', () => {
	let at: Place
	before(async () => {
		at = await place()
		await mkdir(`${at.root}/sub`)
	})
	after(() => at.close())

	it('deny-11 a variable that a loop, a number or a stream sets counts like an assignment', async () => {
		const lists = { allow: ['bash(ls *)', 'bash(ls)'] }
		for (const command of [
			'for PATH in ./bin; do ls x; done',
			'for PATH in "$PWD/bin"; do ls; done',
			'select PATH in ./bin; do ls x; done',
			'for GIT_PAGER in "sh -c id"; do ls x; done',
			'for path in ./bin; do ls x; done',
			'for ((PATH=1;;)); do ls; break; done',
			'((PATH=1)); ls x',
			'((PATH++)); ls x',
			'ls $((PATH=1)) x',
			'ls x {PATH}>/dev/null; ls x',
			'coproc PATH { ls x; }; ls x',
		])
			expect((await bash(at, command, lists, host)).decision, command).to.equal('ask')
		for (const command of ['for f in a b; do ls $f; done', 'for i in 1 2; do ls x; done', 'ls x'])
			expect((await bash(at, command, lists, host)).decision, command).to.equal('allow')
	})

	it('deny-11 a long option counts by its beginning, as programs take it', async () => {
		const lists = { allow: ['bash(sort *)', 'bash(git *)', 'bash(sed *)', 'bash(tar *)', 'bash(cp *)'] }
		for (const command of [
			`sort --outp=${at.home}/w a`,
			`sort a --o ${at.home}/w`,
			`sort --outpu ${at.home}/w a`,
			`sort -rno ${at.home}/w a`,
			`sort -uo${at.home}/w a`,
			`git log --outpu=${at.home}/w`,
			`sed --in-pl s/a/b/ ${at.home}/w`,
			`sed --i s/a/b/ ${at.home}/w`,
			`tar --cre --fi=${at.home}/w a`,
			`cp --target-dir=${at.home} a`,
		])
			expect((await bash(at, command, lists, host)).decision, command).to.equal('ask')
		expect((await bash(at, 'sort --outp=w a', lists, host)).decision).to.equal('allow')
		expect((await bash(at, 'sort --key=1 a', lists, host)).decision).to.equal('allow')
		const deny = { deny: ['bash(curl)'] }
		for (const command of [
			"sort --compress-prog='curl x' a",
			"tar --checkpoint-act=exec='curl x' -cf a b",
			"rsync --rs='curl x' a b",
		])
			expect((await bash(at, command, deny)).decision, command).to.equal('deny')
	})

	for (const [what, ...commands] of [
		['-c with -- before its text', "bash -c -- 'curl x'", "sh -c -- 'curl x'", "sh -ec -- 'curl x'"],
		[
			'what xargs reads',
			'echo curl --version | xargs env',
			'echo curl x | xargs nice -n 5',
			"printf 'curl x' | xargs -I{} sh -c '{}'",
			'echo curl | xargs -I% % --version',
			"echo 'curl x' | parallel",
		],
		['arguments of parallel', "parallel ::: 'curl x'", "parallel ::: a 'curl x'", 'parallel curl ::: a'],
		['a remembered name', 'hash -p /usr/bin/curl foo; foo', 'hash -p curl ls; ls', 'hash -p/usr/bin/curl foo'],
		[
			'limits and privileges',
			'prlimit curl x',
			'prlimit --nofile=10 curl x',
			'setpriv --reuid 1000 curl x',
			'setpriv curl x',
			'choom -n 0 -- curl x',
			'pkexec curl x',
		],
		[
			'architectures',
			'linux64 curl x',
			'linux32 curl x',
			'setarch x86_64 curl x',
			'setarch -R curl x',
			'setarch curl x',
			'i386 curl x',
		],
		['filters', "split --filter='curl x' a", "split -b 1 --fil='curl x' a", "split --filter 'curl x' a"],
		[
			'the language of make',
			"make --eval 'x: ; curl y' x",
			"make --eval='$(shell curl y)'",
			"make --ev 'x:\n\t@curl y' x",
			"make 'A:=$(shell curl y)'",
			"make 'A!=curl y'",
		],
		['groups', "sg staff -c 'curl x'", "sg staff 'curl x'", "sg -c 'curl x' staff"],
		[
			'daemons',
			'start-stop-daemon --start --exec /usr/bin/curl -- x',
			'start-stop-daemon -S -x curl',
			'start-stop-daemon --start --startas=curl',
		],
		[
			'debuggers',
			"gdb -batch -ex 'shell curl x'",
			"gdb -ex '!curl x'",
			'gdb --args curl x',
			'gdb -ex \'python import os; os.system("curl x")\'',
			"gdb -ex='shell curl x'",
			'gdb curl -ex run',
		],
		[
			'data bases',
			"sqlite3 a.db '.shell curl x'",
			"sqlite3 a.db '.system curl x'",
			"sqlite3 -cmd '.sh curl x' a.db",
			"echo '.shell curl x' | sqlite3",
			"sqlite3 a '.once |curl x'",
			"psql -c '\\! curl x'",
			"mysql -e 'system curl x'",
		],
	] as [string, ...string[]][])
		it(`deny-12 ${what}: the deny rule for the inner command matches`, async () => {
			for (const command of commands) {
				expect((await bash(at, command, { deny: ['bash(curl)'] })).decision, command).to.equal('deny')
				// The negative control.
				expect((await bash(at, command, { deny: ['bash(wget)'] })).decision, command).not.to.equal('deny')
			}
		})

	it('deny-12 what xargs reads is no command where it names one', async () => {
		for (const command of [
			'ls | xargs -r rm',
			'ls | xargs -n1 rm {}',
			'ls | xargs -I{} mv {} x',
			"ls | xargs -0 sh -c 'rm a'",
			'ls | xargs',
		])
			expect((await bash(at, command, { deny: ['bash(curl)'] })).decision, command).to.equal('allow')
		for (const command of [
			'ls | xargs env',
			'ls | xargs -rn 1 nice -n 5',
			'ls | xargs -I{} {} x',
			'ls | xargs -i sh -c {}',
			'ls | parallel',
		])
			expect((await bash(at, command, { deny: ['bash(curl)'] })).decision, command).to.equal('ask')
	})

	it('deny-12 the same words that start nothing are not refused', async () => {
		for (const command of [
			'sqlite3 a.db "select 1"',
			'make all',
			'hash -r',
			'xargs rm',
			'split -b 1 a',
			'gdb --version',
			'prlimit',
			'sg',
		])
			expect((await bash(at, command, { deny: ['bash(curl)'] })).decision, command).to.equal('allow')
	})

	it('deny-12 $PWD and ~+ mean the folder: a denied file is denied under these names too', async () => {
		const lists = { deny: ['read(notes.txt)'] }
		for (const command of [
			'cat $PWD/notes.txt',
			'cat "$PWD"/notes.txt',
			'cat "${PWD}/notes.txt"',
			'cat ~+/notes.txt',
			'. $PWD/notes.txt',
			'source "$PWD/notes.txt"',
			'cat < $PWD/notes.txt',
			'while read l; do echo $l; done < "$PWD"/notes.txt',
			'cp $PWD/notes.txt x',
			'cd sub; cat $PWD/../notes.txt',
			'cd sub && cat < "$PWD/../notes.txt"',
		])
			expect((await bash(at, command, lists)).decision, command).to.equal('deny')
		expect((await bash(at, 'cat $PWD/a', lists)).decision).to.equal('allow')
		// Where a command starts is where bash stands, not the root.
		const inRoot = { deny: ['read(./notes.txt)'] }
		expect((await bash(at, 'cat $PWD/notes.txt', inRoot, { cwd: `${at.root}/sub` })).decision).to.equal('allow')
		expect((await bash(at, 'cat $PWD/../notes.txt', inRoot, { cwd: `${at.root}/sub` })).decision).to.equal('deny')
	})

	it('deny-12 where the folder may be another, $PWD is a doubt for rules of commands', async () => {
		const lists = { deny: [`bash(cat ${at.root}/sub/x)`] }
		expect((await bash(at, 'cat $PWD/sub/x', lists)).decision).to.equal('deny')
		for (const command of [
			'cd sub; cat $PWD/x',
			'PWD=/x; cat $PWD/x',
			'for PWD in /x; do cat $PWD/y; done',
			'popd; cat ~+/x',
		])
			expect((await bash(at, command, lists)).decision, command).to.equal('ask')
	})
})
