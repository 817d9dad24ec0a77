// What Garuda's own git is really started with, seen by a stub in its place: settings, variables, options, and when names are looked up.
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { ToolError } from '../../../src/engine/errors.ts'
import { createGit, type GitRun } from '../../../src/engine/sandbox/git.ts'
import { createConfigReader, parseGitConfig, riskyKeys } from '../../../src/engine/sandbox/git-config.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'

/** What a repository, the user or the system may set and git would obey; with the value that stands over it. */
const settings: Record<string, string> = {
	'core.fsmonitor': 'false',
	'core.hooksPath': '/dev/null',
	'core.pager': 'cat',
	'core.editor': 'false',
	'sequence.editor': 'false',
	'core.sshCommand': 'false',
	'core.gitProxy': '',
	'core.askPass': 'false',
	'core.alternateRefsCommand': 'true',
	'credential.helper': '',
	'commit.gpgSign': 'false',
	'tag.gpgSign': 'false',
	'tag.forceSignAnnotated': 'false',
	'push.gpgSign': 'false',
	'log.showSignature': 'false',
	'merge.verifySignatures': 'false',
	'gpg.program': 'false',
	'gpg.ssh.program': 'false',
	'gpg.x509.program': 'false',
	'interactive.diffFilter': '',
	'protocol.allow': 'never',
	'safe.bareRepository': 'explicit',
	'submodule.recurse': 'false',
	'fetch.recurseSubmodules': 'false',
	'gc.auto': '0',
	'maintenance.auto': 'false',
	'color.ui': 'false',
	'column.ui': 'never',
	'advice.detachedHead': 'false',
	'core.untrackedCache': 'keep',
}
const variables: Record<string, string> = {
	PATH: '/usr/bin:/bin',
	HOME: '/h',
	XDG_CONFIG_HOME: '/x',
	LC_ALL: 'C',
	TERM: 'dumb',
	GIT_TERMINAL_PROMPT: '0',
	GIT_OPTIONAL_LOCKS: '0',
	GIT_PAGER: 'cat',
	GIT_EDITOR: 'false',
	GIT_SEQUENCE_EDITOR: 'false',
	GIT_ASKPASS: 'false',
	SSH_ASKPASS: 'false',
	GIT_SSH_COMMAND: 'false',
	GIT_NO_LAZY_FETCH: '1',
	GIT_AUTHOR_NAME: 'Garuda',
	GIT_AUTHOR_EMAIL: 'garuda@localhost',
	GIT_COMMITTER_NAME: 'Garuda',
	GIT_COMMITTER_EMAIL: 'garuda@localhost',
}

describe('sandbox: git as it is asked', () => {
	let dir: string
	let stub: string
	beforeEach(() => {
		dir = tempDir()
		stub = join(dir, 'git')
		// One line a run: the words and the variables. A look-up is answered with the names in a file.
		writeFileSync(
			stub,
			`#!/bin/sh
{ for word; do printf '%s\\001' "$word"; done; printf '\\002'; env -0 | tr '\\000' '\\001'; printf '\\003'; } >> ${dir}/log
case "$*" in *--get-regexp*) cat ${dir}/names 2>/dev/null;; esac
exit 0
`,
		)
		chmodSync(stub, 0o755)
	})
	afterEach(removeTemp)

	interface Asked {
		config: Record<string, string>
		before: string[]
		command: string[]
		env: Record<string, string>
	}
	const ask = async (args: string[], run: Partial<GitRun> = {}, names: string[] = []): Promise<Asked[]> => {
		writeFileSync(join(dir, 'log'), '')
		writeFileSync(join(dir, 'names'), names.map((name) => `${name}\0`).join(''))
		const env = {
			PATH: `.:bin:/usr/bin:/bin`,
			HOME: '/h',
			XDG_CONFIG_HOME: '/x',
			GIT_DIR: '/evil',
			LD_PRELOAD: '/evil.so',
			KEY: 'k',
		}
		await createGit({ git: stub, env }).run(args, { cwd: dir, ...run })
		return readFileSync(join(dir, 'log'), 'utf8')
			.split('\u0003')
			.filter((one) => one !== '')
			.map((one) => {
				const [words = '', env = ''] = one.split('\u0002')
				const all = words.split('\u0001').slice(0, -1)
				const asked: Asked = { config: {}, before: [], command: [], env: {} }
				while (all[0]?.startsWith('-') && all[0] !== '--version')
					if (all[0] === '-c') {
						const [, pair] = all.splice(0, 2)
						asked.config[pair!.slice(0, pair!.indexOf('='))] = pair!.slice(pair!.indexOf('=') + 1)
					} else asked.before.push(all.shift()!)
				asked.command = all
				for (const line of env.split('\u0001').filter((each) => each.includes('=')))
					asked.env[line.slice(0, line.indexOf('='))] = line.slice(line.indexOf('=') + 1)
				return asked
			})
	}
	const looksUp = (asked: Asked[]) => asked.some(({ command }) => command.includes('--get-regexp'))

	it('each setting that runs a program or asks stands fixed over the configuration, and nothing of the environment passes', async () => {
		const [asked] = await ask(['rev-parse', 'HEAD'], {
			config: [
				['core.pager', 'evil'],
				['core.quotePath', 'false'],
			],
		})
		expect(asked!.config).to.deep.equal({ 'core.quotePath': 'false', ...settings })
		expect(asked!.before).to.deep.equal(['--no-optional-locks', '--no-pager', '--no-replace-objects'])
		expect(asked!.command).to.deep.equal(['rev-parse', 'HEAD'])
		for (const name of ['PWD', 'SHLVL', '_', 'OLDPWD']) delete asked!.env[name]
		expect(asked!.env).to.deep.equal(variables)
		const [with_] = await ask(['rev-parse'], { gitDir: '/g', workTree: '/w', index: '/i' })
		expect(with_!.env).to.include({ GIT_DIR: '/g', GIT_WORK_TREE: '/w', GIT_INDEX_FILE: '/i' })
	})

	it('commands that could show by a program are told not to, and submodules are not entered', async () => {
		for (const command of ['diff', 'log', 'show', 'diff-tree', 'diff-index', 'diff-files', 'format-patch'])
			expect((await ask([command, 'x'])).at(-1)!.command, command).to.include.members([
				'--no-ext-diff',
				'--no-textconv',
			])
		for (const command of ['status', 'diff', 'diff-index', 'diff-files'])
			expect((await ask([command, 'x'])).at(-1)!.command, command).to.include('--ignore-submodules=dirty')
		expect((await ask(['branch', 'x'])).at(-1)!.command).to.deep.equal(['branch', 'x'])
	})

	it('each program that a configuration names is silenced by its name, whatever its case', async () => {
		const names = [
			...[
				'filter.a.clean',
				'filter.a.smudge',
				'filter.b.process',
				'merge.m.driver',
				'diff.d.command',
				'diff.d.textconv',
			],
			...['gpg.openpgp.program', 'trailer.t.cmd', 'trailer.t.command', 'remote.r.uploadpack', 'remote.r.receivepack'],
			...['remote.r.vcs', 'credential.https://h.helper', 'FILTER.c.CLEAN', 'remote.r.url', 'diff.d.xfuncname'],
		]
		const asked = await ask(['status'], {}, names)
		expect(asked).to.have.lengthOf(2)
		expect(asked[0]!.config).to.deep.equal(settings)
		const { config } = asked[1]!
		for (const [name, value] of [
			...['filter.a.clean', 'filter.a.smudge', 'filter.b.process', 'FILTER.c.CLEAN'].map((each) => [each, '']),
			...['filter.a.required', 'filter.b.required', 'FILTER.c.required'].map((each) => [each, 'false']),
			...names.slice(4, 12).map((each) => [each, 'false']),
			['credential.https://h.helper', ''],
			['merge.m.driver', 'git merge-file --marker-size=%L %A %O %B'],
		] as const)
			expect(config[name!], name).to.equal(value)
		for (const name of ['remote.r.url', 'diff.d.xfuncname']) expect(config).to.not.have.property(name)
	})

	it('a filter whose name cannot be silenced ends the run; another name with = is no reason', async () => {
		for (const name of ['filter.a=b.clean', 'merge.a=b.driver', 'FILTER.a=b.process'])
			expect(await ask(['status'], {}, [name]).catch((error) => error), name).to.be.instanceOf(ToolError)
		expect(await ask(['status'], {}, ['remote.a=b.vcs', 'credential.https://h?a=b.helper'])).to.have.lengthOf(2)
	})

	it('names are looked up before whatever could meet a filter, and only then', async () => {
		const gitDir = join(dir, 'g')
		mkdirSync(join(gitDir, 'info'), { recursive: true })
		const attributes = (text: string) => writeFileSync(join(gitDir, 'info/attributes'), text)
		attributes('* -filter\n')
		for (const args of [
			...['rev-parse', 'symbolic-ref', 'update-ref', 'for-each-ref', 'show-ref', 'init', 'write-tree'].map((name) => [
				name,
			]),
			...['ls-tree', 'rev-list', 'commit-tree', 'branch', 'check-ignore', 'mktree', 'config'].map((name) => [name]),
			...[
				['cat-file', '-p', 'x'],
				['cat-file', '--batch'],
				['hash-object', '-w', '--no-filters', 'x'],
				['read-tree', 'x'],
			],
			...[
				['hash-object', '-w', '--stdin'],
				['update-index', '-z', '--index-info'],
			],
		])
			expect(looksUp(await ask(args)), args.join(' ')).to.equal(false)
		for (const args of [
			...[
				['cat-file', '--filters', 'x'],
				['cat-file', '--textconv', 'x'],
				['cat-file', '--fil', 'x'],
				['cat-file', '--te', 'x'],
			],
			...[
				['cat-file', '--path=x', '--batch'],
				['cat-file', '--use-mailmap', 'x'],
				['hash-object', '-w', 'x'],
			],
			...[
				['update-index', '--add', 'x'],
				['read-tree', '-u', 'x'],
				['read-tree', 'x', 'y'],
				['read-tree', '--reset'],
			],
			...[['status'], ['add', 'x'], ['ls-files', '-m'], ['checkout', 'x']],
		])
			expect(looksUp(await ask(args)), args.join(' ')).to.equal(true)
		for (const name of ['ls-files', 'update-index', 'hash-object', 'add']) {
			expect(looksUp(await ask([name, 'x'], { gitDir })), name).to.equal(false)
			expect(looksUp(await ask([name, 'x'], { gitDir: 'g' })), name).to.equal(true)
		}
		expect(looksUp(await ask(['checkout', 'x'], { gitDir }))).to.equal(true)
		for (const [text, expected] of [
			['*.txt filter=a\n* -filter -text\n\n', false],
			['* -filter\n*.txt filter=a\n', true],
			['* -filter text\n', true],
			['* -text\n', true],
			['*.c -filter\n', true],
			['', true],
		] as const) {
			attributes(text)
			expect(looksUp(await ask(['add', 'x'], { gitDir })), text).to.equal(expected)
		}
		attributes('* -filter\n')
		writeFileSync(join(gitDir, 'commondir'), '.\n')
		expect(looksUp(await ask(['add', 'x'], { gitDir }))).to.equal(true)
		rmSync(join(gitDir, 'commondir'))
		rmSync(join(gitDir, 'info/attributes'))
		expect(looksUp(await ask(['add', 'x'], { gitDir }))).to.equal(true)
	})

	it('an option before the command is refused, for it could set anything', async () => {
		for (const args of [
			['-c', 'alias.x=!evil', 'x'],
			['--exec-path=/x', 'status'],
			['-C', '/', 'status'],
		])
			expect(await ask(args).catch((error) => error), args[0]).to.be.instanceOf(ToolError)
		expect((await ask(['--version']))[0]!.command).to.deep.equal(['--version'])
	})

	it('without a git it says so; limits of output and time end it', async () => {
		const none = createGit({ env: { PATH: dir }, avoid: [dir] })
		expect(await none.available()).to.equal(null)
		expect(await none.run(['status'], { cwd: dir }).catch((error) => error)).to.be.instanceOf(ToolError)
		const with_ = (text: string) => writeFileSync(stub, `#!/bin/sh\n${text}\n`)
		const git = createGit({ git: stub, env: {} })
		const run = (more: Partial<GitRun> = {}) => git.run(['rev-parse'], { cwd: dir, ...more })
		with_('echo git version 2.50.1')
		expect(await git.available()).to.equal('2.50.1')
		with_('exit 1')
		expect(await git.available()).to.equal(null)
		with_('yes')
		expect(await run({ maxBytes: 100_000 })).to.include({ code: null })
		expect((await run({ maxBytes: 100_000 })).stderr).to.include('more than 100000 bytes')
		// The first reason stays, also where something holds the output open.
		with_('setsid sleep 1 & yes')
		const twice = await run({ maxBytes: 1_000, timeoutMs: 300 })
		expect(twice.stderr).to.include('more than 1000 bytes').and.not.include('longer than')
		with_('sleep 30')
		expect((await run({ timeoutMs: 100 })).stderr).to.include('longer than 100 ms')
		expect((await run({ signal: AbortSignal.abort() })).stderr).to.include('cancelled')
		with_('head -c 500000 /dev/zero | tr "\\0" e >&2; echo out')
		const loud = await run()
		expect([loud.code, loud.stdout.toString()]).to.deep.equal([0, 'out\n'])
		expect(loud.stderr.length).to.be.lessThan(200_000)
		with_('cat')
		expect((await run({ input: 'given' })).stdout.toString()).to.equal('given')
	})
})

describe('sandbox: git configuration', () => {
	afterEach(removeTemp)

	it('each key that runs a program or leads to another file is risky, and no other', () => {
		const line = (key: string, value: string) => {
			const [section, ...rest] = key.split('.')
			const name = rest.pop()!
			return `[${section}${rest.length > 0 ? ` "${rest.join('.')}"` : ''}]\n\t${name} = ${value}\n`
		}
		for (const key of [
			...['fsmonitor', 'hooksPath', 'pager', 'editor', 'sshCommand', 'askPass', 'gitProxy', 'alternateRefsCommand'].map(
				(name) => `core.${name}`,
			),
			...['core.attributesFile', 'core.worktree', 'sequence.editor', 'include.path', 'includeIf.gitdir:x.path'],
			...[
				'filter.x.clean',
				'filter.x.smudge',
				'filter.x.process',
				'diff.x.textconv',
				'diff.x.command',
				'diff.external',
			],
			...['merge.x.driver', 'difftool.x.cmd', 'difftool.x.path', 'mergetool.x.cmd', 'mergetool.x.path', 'alias.x'],
			...['pager.log', 'credential.helper', 'credential.https://h.helper', 'gpg.program', 'gpg.ssh.program'],
			...['remote.x.uploadpack', 'remote.x.receivepack', 'remote.x.vcs', 'remote.x.proxy', 'url.x.insteadOf'],
			...['url.x.pushInsteadOf', 'interactive.diffFilter', 'trailer.x.cmd', 'trailer.x.command', 'browser.x.cmd'],
			...['man.x.cmd', 'uploadpack.packObjectsHook', 'init.templateDir', 'protocol.ext.allow', 'protocol.allow'],
		])
			expect(riskyKeys(line(key, '/x')), key).to.have.lengthOf(1)
		expect(riskyKeys(line('submodule.x.update', '!evil'))).to.have.lengthOf(1)
		expect(riskyKeys(line('submodule.x.update', 'rebase'))).to.deep.equal([])
		for (const value of ['true', 'false', 'yes', 'no', 'on', 'off', '0', '1', '', 'TRUE'])
			expect(riskyKeys(line('core.fsmonitor', value)), value).to.deep.equal([])
		expect(riskyKeys(line('core.fsmonitor', 'trueish'))).to.deep.equal(['core.fsmonitor'])
		for (const key of ['core.bare', 'user.name', 'remote.x.url', 'branch.x.remote', 'core.excludesFile', 'merge.ff'])
			expect(riskyKeys(line(key, '/x')), key).to.deep.equal([])
	})

	it('values are read as git reads them', () => {
		for (const [text, key, value] of [
			['[a]\nb = c', 'a.b', 'c'],
			['[A "B"]\nC', 'a.B.c', 'true'],
			['[a] b = c', 'a.b', 'c'],
			['[a "x\\"y"]\nb = c', 'a.x"y.b', 'c'],
			['[a]\nb = c # d', 'a.b', 'c'],
			['[a]\nb = c ; d', 'a.b', 'c'],
			['[a]\nb = "c # d" e', 'a.b', 'c # d e'],
			['[a]\nb = c\\\\d', 'a.b', 'c\\d'],
			['[a]\nb = c\\\nd', 'a.b', 'cd'],
			['[a]\nb = "x\\"y"', 'a.b', 'x"y'],
			['[a]\r\nb = c\r\n', 'a.b', 'c'],
		] as const)
			expect(parseGitConfig(text), text).to.deep.equal([{ key, value }])
		expect(parseGitConfig('# x\n; y\n\n')).to.deep.equal([])
	})

	it('what a file and its includes say is read once for each state, as deep and as many as git would', () => {
		const dir = tempDir()
		const at = (name: string) => join(dir, name)
		const put = (name: string, text: string) => writeFileSync(at(name), text)
		const read = createConfigReader(dir)
		put(
			'config',
			'[core]\nbare = true\nworktree = /w\nhooksPath = h1\n[include]\npath = one\n[includeIf "x"]\npath = ~/two\n[include]\npath = none\n',
		)
		put('one', `[core]\nhooksPath = h2\nbare = false\n[include]\npath = ${at('config')}\n`)
		put('two', '[extensions]\nworktreeConfig = true\n')
		const view = read(at('config'))
		expect(view).to.deep.equal({
			hooksPaths: ['h1', 'h2'],
			files: [at('config'), at('one'), at('two')],
			missing: [at('none')],
			bare: true,
			worktree: '/w',
			worktreeConfig: false,
			reftable: false,
		})
		put('config', '[core]\nhooksPath = h3-longer\n')
		expect(read(at('config')).hooksPaths).to.deep.equal(['h3-longer'])
		for (const [text, bare] of [
			['bare', true],
			['bare = yes', true],
			['bare = 1', true],
			['bare = no', false],
			['bare = off', false],
			['bare = false', false],
			['bare = 0', false],
			['bare = ""', false],
		] as const) {
			put('config', `[core]\n${text}\n# ${Math.random()}\n`)
			expect(read(at('config')).bare, text).to.equal(bare)
		}
		for (const [format, reftable] of [
			['reftable', true],
			['files', false],
		] as const) {
			put('config', `[extensions]\nrefStorage = ${format}\n`)
			expect(read(at('config')).reftable).to.equal(reftable)
		}
		// A chain that is longer than git follows, and a folder in its place.
		for (let index = 0; index < 9; index++)
			put(`c${index}`, `[core]\nhooksPath = h${index}\n[include]\npath = c${index + 1}\n`)
		expect(read(at('c0')).hooksPaths).to.have.lengthOf(5)
		mkdirSync(at('folder'))
		expect(read(at('folder')).files).to.deep.equal([])
		expect(read(at('nothing'))).to.deep.include({ files: [], missing: [] })
		put('many', Array.from({ length: 60 }, (_, index) => `[include]\npath = m${index}\n`).join(''))
		for (let index = 0; index < 60; index++) put(`m${index}`, '[a]\nb = c\n')
		expect(read(at('many')).files.length).to.be.lessThan(40)
	})
})
