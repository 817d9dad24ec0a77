// Options that hold a command: by their beginning, joined, and next to those that only take a word. One line for each.
import { expect } from 'chai'
import { readShell } from '../../../src/engine/permission/shell-words.ts'

const read = async (text: string): Promise<string[]> =>
	(await readShell(text)).commands.map(({ words }) => words.join(' '))

describe('permission: options that hold commands', () => {
	it('deny-12 a long option is taken by its beginning', async () => {
		for (const text of [
			'su --comman "gaa b"',
			'su --comman="gaa b"',
			'su --session-comman "gaa b"',
			'runuser --comman "true; gaa b"',
			'script --comman "gaa b"',
			'flock f --comman "gaa b"',
			'man --page "gaa b" x',
			'zip --unzip-comman "gaa b" x',
			'git grep --open-files-in-page "gaa b"',
			'tar xf a --to-comman "gaa b"',
			'tar xf a --use-compress-progra "gaa b"',
			'tar xf a --rsh-comman="gaa b"',
			'tar xf a --rmt-comman="gaa b"',
			'bash --init-comman "gaa b"',
			'fish --comman "gaa b"',
		])
			expect(await read(text), text).to.include('gaa b')
	})

	it('deny-12 options of shells and editors hold whole texts', async () => {
		for (const text of [
			"fish -C 'true; gaa b'",
			"gdb -eval-command 'shell gaa b'",
			"gdb --eval-command 'shell gaa b'",
			"gdb --init-eval-command 'shell gaa b'",
			"nix-shell --command 'true; gaa b'",
			"vim --cmd 'r !gaa b'",
			'awk \'-esystem("gaa b")\'',
			'gawk \'--source=BEGIN { system("gaa b") }\'',
			'gawk \'--sourc=BEGIN { system("gaa b") }\'',
		])
			expect(await read(text), text).to.include('gaa b')
	})

	it('deny-12 a folder that a program goes to first is one where its words lie', async () => {
		for (const name of ['git', 'make', 'env', 'tar', 'ninja'])
			for (const option of ['-C sub', '-Csub', '--directory sub', '--directory=sub', '--chdir=sub'])
				expect((await readShell(`${name} ${option} gaa`)).folders, `${name} ${option}`).to.deep.equal(['sub'])
		expect((await readShell('ls -C sub')).folders).to.deep.equal([])
	})

	it('deny-12 settings of npm that a later npm runs', async () => {
		for (const key of ['script-shell', 'editor', 'viewer', 'git'])
			for (const text of [`npm config set ${key} 'gaa b'`, `npm config set ${key}='gaa b'`])
				expect(await read(text), text).to.include('gaa b')
		expect(await read("npm config set registry 'gaa b'")).to.not.include('gaa b')
	})

	it('a word that an option takes is no command, and what stands behind is read once', async () => {
		for (const text of ['faketime -f 0 gaa b', 'faketime --exclude-monotonic 0 gaa b', 'faketime 0 gaa b'])
			expect(await read(text), text).to.include('gaa b')
		for (const [text, ...expected] of [
			['script -t v f gaa b', 'gaa b'],
			['script -T v f gaa b', 'gaa b'],
			...['timeout', 'gtimeout'].flatMap((name) =>
				['-s KILL', '-k 1', '--signal KILL', '--kill-after 1'].map((option) => [`${name} ${option} 5 gaa b`, 'gaa b']),
			),
			['flock -w 1 f gaa b', 'gaa b'],
			['flock -E 1 f gaa b', 'gaa b'],
			['watch -n 5 gaa b', 'gaa b'],
			['watch --interval 5 gaa b', 'gaa b'],
		] as [string, ...string[]][])
			expect(await read(text), text).to.deep.equal([text, ...expected])
	})
})
