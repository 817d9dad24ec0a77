// Globs of a repository's own files against names of its own choice: the answer of an expression, in linear time.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { denyReadPaths } from '../../src/engine/config/deny-read.ts'
import { isIgnored, parseIgnore } from '../../src/engine/files/gitignore.ts'
import { compileParts, literal, type Part } from '../../src/engine/glob-parts.ts'
import { compileGlob, deniedTest } from '../../src/engine/permission/match.ts'
import { parseRule } from '../../src/engine/permission/rules.ts'

describe('files: globs of a repository', () => {
	it('says what an expression says, however many repeats there are', () => {
		let seed = 11
		const next = (below: number) => {
			seed = (seed * 1103515245 + 12345) % 2147483648
			return (seed >> 8) % below
		}
		const some = (depth: number): Part[] =>
			Array.from({ length: 1 + next(5) }, (): Part => {
				const kind = next(depth > 0 ? 6 : 4)
				if (kind === 0) return { many: [{ one: '[^/]' }] }
				if (kind === 1) return { many: [{ one: '.' }] }
				if (kind < 4) return next(4) === 0 ? { one: '[!-b]' } : literal(['a', 'b', '/', 'B', '.', 'ſ'][next(6)]!)
				return kind === 4
					? { either: [some(depth - 1), some(0), []] }
					: { many: [literal('a'), ...some(0), literal('/')] }
			})
		const source = (parts: Part[]): string =>
			parts
				.map((part) =>
					'one' in part
						? part.one
						: 'many' in part
							? `(?:${source(part.many)})*`
							: `(?:${part.either.map(source).join('|')})`,
				)
				.join('')
		let matched = 0
		for (let round = 0; round < 4000; round++) {
			const parts = some(2)
			const flags = next(2) === 0 ? 's' : 'is'
			const test = compileParts(parts, flags)!
			const expression = new RegExp(`^${source(parts)}$`, flags)
			for (let i = 0; i < 6; i++) {
				const text = Array.from({ length: next(8) }, () => ['a', 'b', '/', 'A', 's', '\n'][next(6)]).join('')
				const expected = expression.test(text)
				if (expected) matched++
				expect(test.test(text), `${source(parts)} ${flags} ${JSON.stringify(text)}`).to.equal(expected)
			}
		}
		expect(matched).to.be.greaterThan(500)
	})

	it('begins its memory anew without another answer', () => {
		const test = compileGlob('/*a*b*{c,d}*', false)!
		for (let i = 0; i < 30_000; i++) {
			const char = String.fromCharCode(0x4e00 + i)
			if (test.test(`/${char}a${char}bc`) !== true || test.test(`/${char}b${char}ac`) !== false) throw new Error(`${i}`)
		}
	}).timeout(60_000)

	it('a path pattern beyond any path is refused with words', () => {
		expect(parseRule(`read(${'*a'.repeat(3000)})`))
			.to.have.property('error')
			.that.includes('far too long')
		expect(parseRule(`edit(${'{'.repeat(50)}a${'}'.repeat(50)})`)).to.have.property('error')
		expect(parseRule(`read(${'*a'.repeat(1000)}b)`)).to.have.property('pattern')
	})

	// In a process of its own: without the fix each would take longer than anyone waits.
	for (const [what, code] of [
		['a rule', "console.log(m.compileGlob('/' + '*a'.repeat(16) + 'b', true).test('/' + 'a'.repeat(100)))"],
		[
			'a rule with thirty stars',
			"console.log(m.compileGlob('/' + '*a'.repeat(30) + 'b', false).test('/' + 'a'.repeat(200)))",
		],
		['a rule on folders', "console.log(m.compileGlob('**a/'.repeat(20) + 'b', true).test('aa/'.repeat(300)))"],
		['a rule of alternatives', "console.log(m.compileGlob('{a,aa}'.repeat(60) + 'b', true).test('a'.repeat(90)))"],
		[
			'a rule of double stars on a very long path',
			"console.log(m.compileGlob('**a**b', true).test('a'.repeat(400000)))",
		],
		[
			'a walker',
			"console.log(m.deniedTest([{ glob: '/' + '*a'.repeat(30) + 'b', below: true }])('/' + 'a'.repeat(200) + '/x'))",
		],
		[
			'an ignore file',
			"console.log(g.isIgnored([g.parseIgnore('*a'.repeat(30) + 'b', '')], 'a'.repeat(200), 'a'.repeat(200), false))",
		],
		[
			'an ignore file with folders',
			"console.log(g.isIgnored([g.parseIgnore('**/a/'.repeat(30) + 'b', '')], 'a/'.repeat(200) + 'c', 'c', false))",
		],
		[
			'an ignore file with classes',
			"console.log(g.isIgnored([g.parseIgnore('*[ab]'.repeat(30) + 'c', '')], 'a'.repeat(200), 'a'.repeat(200), false))",
		],
		[
			'hidden paths',
			"console.log((await d.denyReadPaths(['/s/' + '*a'.repeat(30) + 'b'], { root: '/r', home: '/h' }, async () => ['a'.repeat(200)])).length > 0)",
		],
	] as const)
		it(`${what} cannot hold the process`, () => {
			const at = (path: string) => JSON.stringify(new URL(`../../src/engine/${path}`, import.meta.url).href)
			const script = `const m = await import(${at('permission/match.ts')}), g = await import(${at('files/gitignore.ts')}), d = await import(${at('config/deny-read.ts')}); ${code}`
			const ran = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
				cwd: fileURLToPath(new URL('../..', import.meta.url)),
				encoding: 'utf8',
				timeout: 60_000,
			})
			expect(ran.stderr).to.equal('')
			expect(ran.stdout).to.equal('false\n')
		}).timeout(90_000)

	it('what should match still does', async () => {
		expect(compileGlob(`/${'*a'.repeat(30)}b`, false)!.test(`/${'a'.repeat(200)}b`)).to.equal(true)
		expect(deniedTest([{ glob: '/x/*a*a*a', below: true }])('/X/BAAA/c')).to.equal(true)
		// More than two stars between slashes are folders too, as git has it.
		expect(isIgnored([parseIgnore('/a/****/[!a]', '')], 'a/b', 'b', false)).to.equal(true)
		expect(isIgnored([parseIgnore('/a/***b', '')], 'a/c/b', 'b', false)).to.equal(false)
		expect(isIgnored([parseIgnore('*a*a*a*[!b]', '')], 'aaac', 'aaac', false)).to.equal(true)
		expect(isIgnored([parseIgnore('*a*a*a*[!b]', '')], 'aaab', 'aaab', false)).to.equal(false)
		expect(
			await denyReadPaths(['/s/*.*.?*x'], { root: '/r', home: '/h' }, async () => ['a.b.cx', 'a.b.x', 'a.b.c']),
		).to.deep.equal(['/s/a.b.cx'])
	})
})
