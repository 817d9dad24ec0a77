// Attacks through arguments of harmless-looking commands: inner commands meet deny rules, outputs are writes, nothing leaves the sandbox.
import { expect } from 'chai'
import { bash, type Place, place } from './helpers.ts'

const deny = { deny: ['bash(touch:*)'] }

const inner: [string, string, ...string[]][] = [
	[
		'args-01',
		'find -exec',
		'find $R -maxdepth 0 -exec touch $M \\;',
		'find . -name x -exec touch {} +',
		"find . -exec sh -c 'touch a' \\;",
	],
	[
		'args-02',
		'find -execdir and -ok',
		'find $R -maxdepth 0 -execdir touch $M \\;',
		'find . -ok touch a \\;',
		'fd -x touch a',
		'find . -okdir touch a ";"',
	],
	['args-05', "sed's e command", 'echo x | sed "1e touch $M"', "sed -e '/x/e touch a' f", "sed -n '$e touch a' f"],
	[
		'args-06',
		"sed's s///e flag",
		'echo "touch $M" | sed "s/^//e"',
		"printf 'touch a' | sed 's|^||ge'",
		"echo touch a | sed -e 's/x/x/2e'",
	],
	[
		'args-10',
		'rg --hostname-bin and --pre',
		'rg --hostname-bin touch x .',
		'rg --pre=touch x',
		"rg --pre 'touch a' x .",
	],
	[
		'args-12',
		'git grep -O',
		'git -C $R grep -O"touch $M;" x',
		"git grep --open-files-in-pager='touch a' x",
		"git grep -O 'touch a' x",
	],
	[
		'args-15',
		'git -c with a command',
		'git -c core.pager="touch $M" -p version',
		"git -c alias.x='!touch a' x",
		'git -c core.sshCommand="touch a" fetch',
		"git config core.fsmonitor 'touch a'",
		"git -c diff.x.textconv='touch a' diff",
	],
	[
		'args-16',
		'git --upload-pack',
		'git ls-remote --upload-pack="touch $M;" $R/x',
		"git fetch --upload-pack 'touch a' x",
		"git clone -u 'touch a' x y",
		"git clone 'ext::touch a' y",
		"git rebase -x 'touch a' HEAD~1",
		'git bisect run touch a',
		"git submodule foreach 'touch a'",
	],
	[
		'args-23',
		'tar that runs commands',
		'tar cf /dev/null --checkpoint=1 --checkpoint-action=exec="touch $M" $R/f.txt',
		"tar xf a.tar --to-command='touch a'",
		"tar -I 'touch a' -xf a.tar",
		"tar xf a --use-compress-program 'touch a'",
	],
	[
		'args-24',
		"awk's system and pipes",
		'awk "BEGIN{system(\\"touch $M\\")}"',
		'awk \'BEGIN{system("touch a")}\'',
		'gawk \'BEGIN{print 1 | "touch a"}\'',
		'awk -v x=1 \'BEGIN{"touch a" | getline}\'',
	],
	['args-26', 'man with a pager', 'man -P "touch $M;" ls', "man --pager='touch a' ls", "man -H'touch a' ls"],
	[
		'args-28',
		'an editor that escapes',
		'printf "!touch $M\\nq\\n" | ed -s',
		"vim -c '!touch a' x",
		"vim -es +':!touch a' x",
		"ex x <<'E'\n!touch a\nE",
	],
	[
		'args-29',
		'a makefile on stdin',
		'make -f - <<<"$(printf "x:\\n\\ttouch $M")"',
		"make -f - <<'E'\nx:\n\ttouch a\nE",
		"printf 'x:\\n\\t@touch a' | make --file=-",
	],
	['args-30', 'env -S', 'env -S "touch $M"', "env --split-string='touch a'", "env -vS 'touch a'"],
	[
		'args-32',
		'code given to an interpreter',
		'perl -e \'system("touch a")\'',
		'python3 -c "import os; os.system(\'touch a\')"',
		'node -e \'require("child_process").execSync("touch a")\'',
		'python -c \'import subprocess; subprocess.run(["touch", "a"])\'',
		"ruby -e '`touch a`'",
	],
]

describe('permission: attacks through arguments', () => {
	let at: Place
	before(async () => {
		at = await place()
	})
	after(() => at.close())

	for (const [id, title, ...commands] of inner)
		it(`${id} ${title}: the deny rule for the inner command matches`, async () => {
			for (const command of commands) {
				const decision = await bash(at, command, deny)
				expect(decision.decision, command).to.equal('deny')
				expect((await bash(at, command)).decision, command).not.to.equal('deny')
			}
		})

	it('args-01 to args-32: no allow rule takes such a command out of the sandbox', async () => {
		for (const [, , command] of inner) {
			const word = command!.split(' ')[0]!
			const lists = { allow: ['bash', `bash(${word}:*)`, 'bash(touch:*)'], fixed: ['bash'] }
			expect((await bash(at, command!, lists, { outside: true })).decision, command).to.equal('ask')
			const effect = { type: 'outside_sandbox' as const, command: command!, wall: 'write' as const, detail: '' }
			expect((await bash(at, command!, lists, { effect })).decision, command).to.equal('ask')
		}
	})

	/** `OUT` becomes a file outside the root, `IN` one inside. */
	const outputs: [string, string, ...string[]][] = [
		['args-03', 'find -fprintf', 'find . -maxdepth 0 -fprintf OUT x', 'find . -fprint OUT', 'find . -fls OUT'],
		['args-07', "sed's w command", 'echo x | sed "w OUT"', "sed -n 's/a/b/w OUT' f", "sed -e '/x/w OUT' f"],
		['args-08', 'sed -i', 'sed -i s/a/b/ OUT', 'sed --in-place -e s/a/b/ OUT', 'sed -i.bak s/a/b/ OUT'],
		[
			'args-13',
			'git diff --output',
			'git diff --no-index --output=OUT a b',
			'git diff --output OUT',
			'git log --output=OUT',
		],
		[
			'args-25',
			"awk's print > file",
			'awk \'BEGIN{print 1 > "OUT"}\'',
			'awk \'{print >> "OUT"}\' f',
			'gawk \'BEGIN{printf "x" > "OUT"}\'',
		],
		[
			'args-31',
			'cp, mv and install with -t',
			'cp -t OUT f.txt',
			'cp f.txt OUT',
			'mv OUT f',
			'install --target-directory=OUT f',
			'ln -s f OUT',
		],
		[
			'args-04',
			'find -delete and others that remove',
			'find OUT -name f.txt -delete',
			'rm -rf OUT',
			'truncate -s 0 OUT',
			'dd if=f of=OUT',
		],
	]
	for (const [id, title, ...commands] of outputs)
		it(`${id} ${title}: writing outside the root asks though the command is allowed`, async () => {
			for (const command of commands) {
				const lists = { allow: [`bash(${command.split(' ')[0]}:*)`, 'bash(echo:*)', 'bash(sed:*)'] }
				const out = command.replaceAll('OUT', `${at.home}/m`)
				for (const sandboxed of [true, false]) {
					const decision = await bash(at, out, lists, { sandboxed })
					expect(decision.decision, out).to.equal('ask')
					expect(decision.reason, out).to.include('outside the working root')
					// Inside the root the rule is enough.
					expect((await bash(at, command.replaceAll('OUT', 'm'), lists, { sandboxed })).decision, command).to.equal(
						'allow',
					)
				}
			}
		})

	it('args-04 in plan mode commands run in the read-only sandbox or not at all', async () => {
		for (const command of ['find . -delete', 'rm a', 'ls']) {
			expect((await bash(at, command, { allow: ['bash'] }, { mode: 'plan', sandboxed: false })).decision).to.equal(
				'deny',
			)
			expect((await bash(at, command, {}, { mode: 'plan', sandboxed: true })).decision).to.equal('allow')
		}
	})

	it('an inner command in another language that only shares a word is no match', async () => {
		for (const command of [
			"grep 'touch x' f",
			"git commit -m 'touch a'",
			"awk '{print $1}' touch",
			'echo touch a',
			"sed 's/touch/x/' f",
			'ls touch',
			'python -c \'print("touch a")\'',
		])
			expect((await bash(at, command, deny)).decision, command).to.equal('allow')
	})
})
