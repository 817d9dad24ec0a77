// The paths that a command's own words name: what it writes, by program and option, and what it hands on.
import { mkdir, symlink } from 'node:fs/promises'
import { expect } from 'chai'
import { checkCommand, namedPaths } from '../../../src/engine/permission/command-paths.ts'
import { DYNAMIC, readShell } from '../../../src/engine/permission/shell-words.ts'
import type { ResolvedPath } from '../../../src/engine/ports.ts'
import { bash, type Place, place } from './helpers.ts'

const named = async (text: string) =>
	(await readShell(text, '/h', '/w')).commands.flatMap((command) => namedPaths(command))
const writes = async (text: string): Promise<string[]> => [
	...new Set((await named(text)).filter(({ access }) => access === 'write').map(({ word }) => word)),
]
/** What is read: arguments, and after = what options hand on. */
const reads = async (text: string): Promise<string[]> =>
	(await named(text))
		.filter(({ access }) => access === 'read')
		.map(({ via, word }) => (via === 'option' ? `=${word}` : via === 'pattern' ? `pattern ${word}` : word))

describe('permission: paths of a command', () => {
	it('files that a program writes are found by its name', async () => {
		for (const name of [
			'tee',
			'touch',
			'mkdir',
			'rm',
			'rmdir',
			'truncate',
			'unlink',
			'shred',
			'mkfifo',
			'mknod',
			'sponge',
		])
			expect(await writes(`${name} -x w v`), name).to.deep.equal(['w', 'v'])
		for (const name of ['cp', 'install', 'ln', 'rsync', 'scp']) {
			expect(await writes(`${name} -x a b w`), name).to.deep.equal(['w'])
			// Of rsync and scp it is another option, with no word or another one.
			const other = name === 'rsync' || name === 'scp'
			expect(await writes(`${name} -t w a b`), name).to.deep.equal([other ? 'b' : 'w'])
			expect(await writes(`${name} -rt w a b`), name).to.deep.equal([other ? 'b' : 'w'])
			expect(await writes(`${name} a b --target-directory=w`), name).to.deep.equal(['w'])
			expect(await writes(`${name} a`), name).to.deep.equal([])
		}
		expect(await writes('mv a b w')).to.deep.equal(['w', 'a', 'b'])
		expect(await writes('rm -- -a b')).to.deep.equal(['-a', 'b'])
		for (const name of ['chmod', 'chown', 'chgrp', 'setfacl'])
			expect(await writes(`${name} -R x w v`), name).to.deep.equal(['w', 'v'])
		for (const name of [
			...['sort', 'gcc', 'cc', 'g++', 'c++', 'clang', 'clang++', 'ld', 'curl', 'patch', 'pandoc', 'go', 'rustc'],
			...['strip', 'objcopy', 'tsc', 'esbuild', 'shuf', 'uniq', 'xmllint', 'yacc', 'bison'],
		]) {
			expect(await writes(`${name} a -o w`), name).to.deep.equal(['w'])
			expect(await writes(`${name} a -ow`), name).to.deep.equal(['w'])
		}
		for (const text of ['sort -rno w a', 'sort -uow a', 'shuf -ro w a'])
			expect(await writes(text), text).to.deep.equal(['w'])
		for (const text of ['gaa -o w a', 'gcc -no w', 'ls a', 'cat a b', 'sort -k o a'])
			expect(await writes(text), text).to.deep.equal([])
	})

	it('files that an option of a program writes are found', async () => {
		for (const option of ['--output', '--output-file', '--outfile', '--out', '--out-file'])
			for (const text of [`gaa ${option} w`, `gaa ${option}=w`]) expect(await writes(text), text).to.deep.equal(['w'])
		for (const text of [
			...['dd if=a of=w', 'wget -O w u', 'wget -P w u', 'wget --output-document=w u', 'wget --directory-prefix w u'],
			...['curl --output-dir w u', 'curl -D w u', 'curl --dump-header=w u', 'curl -c w u', 'curl --cookie-jar w u'],
			...['tar', 'bsdtar', 'gtar'].flatMap((tar) => [`${tar} -cf w a`, `${tar} xf a -C w`]),
			...['tar cf w a', 'tar rf w a', 'tar -uf w a', 'tar -c -f w a', 'tar -cz --file=w a', 'tar --create -f w a'],
			...[
				'tar --append --file w a',
				'tar --update -f w a',
				'tar -c a -fw',
				'tar -x --directory=w -f a',
				'tar -xf a -C w',
			],
			...[
				'unzip a -d w',
				'zip -r w a b',
				'find . -fprint w',
				'find . -fprintf w x',
				'find . -fprint0 w',
				'find . -fls w',
			],
			...['find w -name a -delete', "sed -n 'w w' a", "sed -n -e p -e '/x/w w' a", "sed --expression='s/a/b/w w' a"],
			...[
				"gsed 's/a/b/gw w' a",
				'sed -i s/a/b/ w',
				'sed -ni s/a/b/ w',
				'sed --in-place s/a/b/ w',
				'sed --in-place=.o p w',
			],
			...['sed -i --expression=p w', 'git clone --separate-git-dir=w u', 'git archive -o w HEAD'],
			...['git format-patch -o w main', 'git format-patch --output-directory=w main'],
			...['awk', 'gawk', 'mawk', 'nawk'].map((awk) => `${awk} '{ print > "w" }' a`),
			...[`awk '{ print >> "w" }' a`, 'a > w', 'a >> w', 'a &> w', 'a >| w', 'a <> w', 'a 2> w', 'a >& w'],
		])
			expect(await writes(text), text).to.deep.equal(['w'])
		for (const text of [
			...[
				'tar tf a',
				'tar -xf a',
				'find . -name a',
				'find -delete',
				'sed p a',
				'sed -e p a',
				'git log -o w',
				'awk 1 a',
			],
			...['unzip a', 'curl u', 'wget u', 'dd if=a', 'zip', 'a 2>&1', 'a >&-', 'a 3>&1-', 'a < b', 'a <& 3'],
		])
			expect(await writes(text), text).to.deep.equal([])
	})

	it('files that more programs write, take away or go to are found', async () => {
		for (const [text, ...wanted] of [
			['objcopy a w', 'w'],
			['uniq a w', 'w'],
			...['chattr', 'gzip', 'gunzip', 'bzip2', 'bunzip2', 'xz', 'unxz', 'patch'].map((name): [string, ...string[]] => [
				`${name} w`,
				'w',
			]),
			['install -d w v', 'w', 'v'],
			['install --directory w', 'w'],
			['wget -o w h', 'w'],
			['wget -a w h', 'w'],
			['wget --append-output=w h', 'w'],
			['curl --trace w h', 'w'],
			['curl --trace-ascii=w h', 'w'],
			['curl --stderr w h', 'w'],
			['tar czfv w x', 'w'],
			['tar -C x -cf w y', 'w'],
			['tar -C x -c -f w y', 'w'],
			['tar --directory crux -xf y -C w', 'crux', 'w'],
			['perl -pi -e s/a/b/ w', 's/a/b/', 'w'],
			['perl -i.bak -pe x w', 'x', 'w'],
			['ruby -i -pe x w', 'x', 'w'],
			['strace -o w ls'],
			['ltrace -o w ls'],
			['openssl rand -out w 1', 'w'],
			['git checkout -- w', 'w'],
			['git checkout w', 'w'],
			['git restore w', 'w'],
			['git rm w', 'w'],
			['git mv w v', 'w', 'v'],
			['git clean -fd w', 'w'],
		] as [string, ...string[]][])
			expect(await writes(text), text).to.include.members(wanted.length > 0 ? wanted : ['w'])
		expect(await writes('perl -pe x w')).to.deep.equal([])
		expect(await writes('git -C /x log w')).to.deep.equal([])
	})

	describe('a folder', () => {
		let at: Place
		before(async () => {
			at = await place()
			for (const dir of ['src/deep', 'other']) await mkdir(`${at.root}/${dir}`, { recursive: true })
			await symlink('src', `${at.root}/link`)
		})
		after(() => at.close())

		it('deny-13 of which all content is denied is changed by nothing that names it alone', async () => {
			for (const rule of ['edit(src/**)', 'edit(SRC/**)', 'edit(./src/*)', 'read(src/**)'])
				for (const command of [
					'rm -rf src',
					'rm -r ./src/',
					'rm -rf link/',
					'cp x src',
					'cp -t src x',
					'cp -at src x',
					'mv x src/',
					'mv src y',
					'rsync -t x src',
					'tar -xf a -C src',
					'unzip a -d src',
					'find src -delete',
					'git rm -r src',
				]) {
					expect((await bash(at, command, { deny: [rule] })).decision, `${rule} ${command}`).to.equal('deny')
					expect((await bash(at, command, { ask: [rule] })).decision, `${rule} ${command}`).to.equal('ask')
				}
			for (const rule of ['edit(src/**/*.pem)', 'edit(other/**)', 'edit(**/*.ts)'])
				expect((await bash(at, 'cp x src', { deny: [rule] })).decision, rule).to.equal('allow')
		})

		it('deny-13 of which all content is denied is read by nothing that names it or a pattern in it', async () => {
			const lists = { deny: ['read(secret/**)', 'read(**/*.pem)'] }
			for (const text of [
				'grep -r x secret',
				'cp -r secret /tmp/x',
				'tar cf a.tar ./secret/',
				'cat secret/*',
				'head -n 1 secret/k?y',
				'cat *.pem',
				'cat sub/*.pem | wc -l',
			])
				expect((await bash(at, text, lists)).decision, text).to.equal('deny')
			for (const text of ['cat *.txt', 'grep -r x src', 'ls other/*', "sed 's/a*/b/' notes"])
				expect((await bash(at, text, lists)).decision, text).to.equal('allow')
			// With no rule a pattern is only a word: what it finds is masked.
			expect((await bash(at, "find . -name '.env*'", {})).decision).to.equal('allow')
		})

		it('deny-13 is not taken away above what is denied', async () => {
			for (const command of [
				'rm -rf src',
				'git rm -r src',
				'mv src y',
				'git clean -fd src',
				'git mv src y',
				'shred src',
			]) {
				expect((await bash(at, command, { deny: ['edit(src/deep/x*)'] })).decision, command).to.equal('deny')
				expect((await bash(at, command, { ask: ['read(SRC/deep/k)'] })).decision, command).to.equal('ask')
				expect((await bash(at, command, { deny: ['edit(other/x)'] })).decision, command).to.equal('allow')
			}
			expect((await bash(at, 'rm -rf .', { deny: ['edit(src/deep/**)'] })).decision).to.equal('deny')
			// Copying into it takes nothing away.
			expect((await bash(at, 'cp x src', { deny: ['edit(src/deep/x)'] })).decision).to.equal('allow')
			expect((await bash(at, 'rm -rf src', { deny: ['read(**/.env)'] })).decision).to.equal('allow')
		})

		it('deny-13 that a command goes to by any spelling is where its words lie', async () => {
			const lists = { deny: ['edit(src/**)'] }
			for (const command of [
				'cd -- src; rm a',
				'cd -P -- src; rm a',
				'git -C src rm a',
				'env -C src touch a',
				'env --chdir=src touch a',
				'make -C src; touch src/a',
				'tar --directory src -xf a',
				'touch $(pwd)/src/a',
				'touch "`pwd`/src/a"',
				'touch $( pwd )/src/a',
			])
				expect((await bash(at, command, lists)).decision, command).to.equal('deny')
			// After a change of the folder it may mean another.
			expect((await bash(at, 'cd other; rm $(pwd)/a', { deny: ['bash(rm x)'] })).decision).to.equal('ask')
		})
	})

	it('with its script in an option sed changes all of its words', async () =>
		expect(await writes('sed -i -e s/a/b/ w v')).to.include.members(['w', 'v']))

	it('standard devices are no files', async () => {
		const devices = ['null', 'zero', 'full', 'random', 'urandom', 'stdin', 'stdout', 'stderr', 'tty', 'fd/3']
		for (const name of devices)
			for (const text of [`a > /dev/${name}`, `a /dev/${name}`, `/dev/${name}`])
				expect(await named(text), text).to.deep.equal([])
		for (const name of ['sda', 'nullx', 'shm/x', 'fd/x'])
			expect(await writes(`a > /dev/${name}`), name).to.have.lengthOf(1)
	})

	it('arguments and values of options are read; words that only look like paths are not', async () => {
		for (const [text, expected] of [
			['gaa x/y -b ~/z', ['x/y', '/h/z']],
			['gaa --a=x -f.env -C/d -D~/e -x', ['=x', '=.env', '=/d', '=~/e']],
			['gaa --a=@x @y if=/z a:./b', ['=x', 'y', 'if=/z', '=/z', 'a:./b', '=./b']],
			['gaa https://h/x a=https://h', ['https://h/x', 'a=https://h']],
			['./gaa x', ['./gaa', 'x']],
			['/bin/gaa', ['/bin/gaa']],
			["gaa '' 'a\nb' a*b a?b -*c -", ['pattern a*b', 'pattern a?b']],
			[`gaa ${'x'.repeat(4097)}`, []],
			['a < x', ['x']],
			['a <& $x', [DYNAMIC]],
			['a <& 3', []],
			['X=/y', []],
		] as const)
			expect(await reads(text), text.slice(0, 40)).to.deep.equal(expected)
		for (const name of [
			...['echo', 'printf', 'print', ':', 'true', 'false', 'test', '[', 'export', 'declare', 'local', 'alias', 'kill'],
			...['sleep', 'cd', 'pushd', 'seq', 'expr'],
		])
			expect(await reads(`${name} x/y`), name).to.deep.equal([])
	})

	it('a path is looked at from each folder that a command goes to, and once', async () => {
		const asked: string[] = []
		const check = async (text: string) => {
			asked.length = 0
			const found = await checkCommand(text, {
				cwd: '/w',
				home: '/h',
				resolve: async (path): Promise<ResolvedPath> => {
					asked.push(path)
					return { path, shown: path, inside: true, protected: null, sensitive: null } as ResolvedPath
				},
			})
			return { found, asked: [...asked].sort() }
		}
		expect((await check('gaa x > x; gaa x')).asked).to.deep.equal(['/w/x'])
		expect((await check('gaa x; gaa x')).found.paths).to.have.lengthOf(1)
		expect((await check('cd s && gaa x ../y')).asked).to.deep.equal(['/w/../y', '/w/s/../y', '/w/s/x', '/w/x'])
		expect((await check('cd /d; gaa x $PWD/y')).asked).to.deep.equal(['/d/x', '/d/y', '/w/x', '/w/y'])
		// What is not known is kept only where something is written.
		expect((await check('cd $s; gaa x')).found.paths.map(({ resolved }) => resolved?.path)).to.deep.equal(['/w/x'])
		expect((await check('cd $s; gaa > x')).found.paths.map(({ resolved }) => resolved?.path ?? null)).to.have.members([
			'/w/x',
			null,
		])
		expect((await check('gaa $x')).found.paths).to.deep.equal([])
		expect((await check(`gaa ${'$x '.repeat(3_000)}`)).found.shell.doubts).to.deep.equal([])
	})

	describe('more paths than are looked at', () => {
		let at: Place
		before(async () => {
			at = await place()
		})
		after(() => at.close())

		it('it asks, and an output among them still meets the rules', async () => {
			const many = (word: (index: number) => string) =>
				Array.from({ length: 2_100 }, (_, index) => word(index)).join(' ')
			const deny = { deny: ['edit(w)'] }
			for (const words of [
				many((index) => `f${index}`),
				many((index) => `f${index}*`),
				many((index) => `--x=f${index}`),
			]) {
				expect((await bash(at, `gaa ${words}`, {})).decision).to.equal('ask')
				for (const output of [`gaa ${words} > w`, `gaa ${words} --output=w`, `gaa ${words}; tee w`])
					expect((await bash(at, output, deny)).decision, output.slice(-20)).to.equal('deny')
			}
		})
	})
})
