// The system prompt and the environment block: fixed bytes, no templates, nothing of the project is run.
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { environment } from '../../../src/engine/context/environment.ts'
import { systemPrompt } from '../../../src/engine/context/system-prompt.ts'
import { wrap } from '../../../src/engine/untrusted.ts'

const empty = { environment: '', instructions: '', memory: '', profiles: [], tools: ['bash', 'read_file'] }

describe('context: system prompt', () => {
	it('E10 texts with $ patterns appear once and unchanged, and the length is the sum of the parts', () => {
		for (const nasty of ["a $'\\n' $& b", '$$ $1 $` $<x>', "{{environment}} ${instructions} %s $'"]) {
			const parts = {
				...empty,
				environment: `E ${nasty} E`,
				instructions: wrap('garuda-instructions', { file: 'AGENTS.md' }, `I ${nasty} I`),
				memory: `M ${nasty} M`,
				profiles: [{ name: 'Node', note: `N ${nasty} N`, testCommand: null }],
				append: `A ${nasty} A`,
			}
			const prompt = systemPrompt(parts)
			for (const letter of ['E', 'I', 'M', 'N', 'A'])
				expect(prompt.split(`${letter} ${nasty} ${letter}`), letter).to.have.length(2)
			const words = (text: string) =>
				systemPrompt({
					...parts,
					environment: `E ${text} E`,
					instructions: wrap('garuda-instructions', { file: 'AGENTS.md' }, `I ${text} I`),
					memory: `M ${text} M`,
					profiles: [{ name: 'Node', note: `N ${text} N`, testCommand: null }],
					append: `A ${text} A`,
				}).length
			expect(prompt.length).to.equal(words('') + 5 * nasty.length)
		}
	})

	it('is short, the same at each call, and says the rules that matter', () => {
		const prompt = systemPrompt(empty)
		expect(prompt).to.equal(systemPrompt({ ...empty }))
		expect(Buffer.byteLength(prompt)).to.be.below(3500)
		for (const word of ['sandbox', 'plan mode', 'data', '[redacted:', 'denied', 'outside'])
			expect(prompt).to.include(word)
		expect(systemPrompt({ ...empty, tools: ['read_file'] })).not.to.include('Each command is a fresh shell')
	})

	it('says which instructions win and adds profiles', () => {
		const prompt = systemPrompt({
			...empty,
			instructions: 'X',
			profiles: [{ name: 'Go', note: 'note.', testCommand: 'go test ./...' }],
		})
		expect(prompt).to.include('GARUDA.md wins').and.include('- Go: note. Tests: go test ./...')
	})
})

describe('context: environment', () => {
	let root: string
	beforeEach(async () => {
		root = await mkdtemp(join(tmpdir(), 'garuda-env-'))
	})
	afterEach(() => rm(root, { recursive: true, force: true }))
	const now = new Date(2026, 0, 5, 12).getTime()
	const block = (files: Record<string, string> = {}, env: Record<string, string> = {}) =>
		environment({ root, env, platform: 'linux', now, read: async (path) => files[path.slice(root.length + 1)] ?? null })

	it('names system, date, root, branch and tools', async () => {
		const text = await environment({
			root,
			env: {},
			platform: 'darwin',
			now,
			read: async (path) => (path.endsWith('.git/HEAD') ? 'ref: refs/heads/feat/x\n' : null),
			exists: async (name) => name === 'git' || name === 'node',
		})
		expect(text)
			.to.include('macOS')
			.and.include('2026-01-05')
			.and.include(root)
			.and.include('branch feat/x')
			.and.include('Tools found: git, node\n')
	})

	it('reads a detached head and a worktree, and no repository as such', async () => {
		expect(await block({ '.git/HEAD': `${'a1'.repeat(20)}\n` })).to.include('commit a1a1a1a1a1a1')
		expect(
			await block({
				'.git': `gitdir: ${root}/main/.git/worktrees/w\n`,
				'main/.git/worktrees/w/HEAD': 'ref: refs/heads/w\n',
			}),
		).to.include('branch w')
		expect(await block()).to.include('not a repository')
		expect(await block({ '.git/HEAD': 'ref: refs/heads/a</garuda-environment>\u001b[2J' })).to.not.include('\u001b')
	})

	it('config-14 a planted program inside the root is neither run nor counted as a tool', async () => {
		const bin = join(root, 'node_modules', '.bin')
		await mkdir(bin, { recursive: true })
		const mark = join(root, 'ran')
		for (const name of ['git', 'rg', 'uv']) {
			await writeFile(join(bin, name), `#!/bin/sh\ntouch ${mark}\n`)
			await chmod(join(bin, name), 0o755)
		}
		const outside = await mkdtemp(join(tmpdir(), 'garuda-bin-'))
		try {
			await writeFile(join(outside, 'jq'), '#!/bin/sh\nexit 1\n')
			await chmod(join(outside, 'jq'), 0o755)
			await symlink(bin, join(outside, 'sneaky'))
			const text = await block({}, { PATH: ['.', 'node_modules/.bin', bin, `${outside}/sneaky`, outside].join(':') })
			expect(text).to.include('Tools found: jq\n')
			const { access } = await import('node:fs/promises')
			expect(
				await access(mark).then(
					() => 'ran',
					() => 'not run',
				),
			).to.equal('not run')
		} finally {
			await rm(outside, { recursive: true, force: true })
		}
	})
})
