// Patterns of rules alone: stars against texts, unknown parts, path globs and the piece that every path of a glob holds.
import { expect } from 'chai'
import {
	compileGlob,
	couldMatch,
	deniedTest,
	escapeGlob,
	globLiteral,
	matchText,
} from '../../../src/engine/permission/match.ts'
import { DYNAMIC } from '../../../src/engine/permission/shell-words.ts'

describe('permission: patterns', () => {
	it('a star is any text, pieces do not overlap, a backslash makes a star itself', () => {
		for (const [pattern, text, expected] of [
			['a*', 'a', true],
			['*', '', true],
			['a*c', 'abc', true],
			['a*c', 'ac', true],
			['ab*b', 'ab', false],
			['*ab*b', 'ab', false],
			['*ab*b', 'abb', true],
			['a*b*c', 'axbxc', true],
			['a*b*c', 'axcxb', false],
			['a*b*b*c', 'abc', false],
			['a**c', 'abc', true],
			['a', 'ab', false],
			['a \\*', 'a *', true],
			['a \\*', 'a b', false],
			['a\\\\*', 'a\\b', true],
			['a\\b', 'a\\b', true],
			['A*', 'ab', false],
		] as const)
			expect(matchText(pattern, text), `${pattern} ${text}`).to.equal(expected)
		expect(matchText('A*', 'aB', true)).to.equal(true)
	})

	it('an unknown part could be any text, also with the spaces around it', () => {
		for (const [pattern, text, expected] of [
			['rm -rf *', '… -rf x', true],
			['rm -rf *', 'rm … x', true],
			['rm -rf *', '…', true],
			['rm -rf *', 'ls …', false],
			['rm', 'r…', true],
			['rm', '…m', true],
			['rm', '…x', false],
			['rm', 'x…', false],
			['a*z', 'a…y', false],
			['a*z', 'ab…', true],
			['a*y*z', 'a…z', true],
			['rm', 'rm', true],
			['rm', 'rm x', false],
			['rm \\*', 'rm …', true],
		] as const)
			expect(couldMatch(pattern, text.replaceAll('…', DYNAMIC)), `${pattern} ${text}`).to.equal(expected)
	})

	it('a glob is a path, and broken ones are none', () => {
		const fits = (glob: string, path: string) => compileGlob(glob, false)!.test(path)
		for (const [glob, path, expected] of [
			['/a/*', '/a/b', true],
			['/a/*', '/a/b/c', false],
			['/a/**', '/a/b/c', true],
			['/a/**/c', '/a/c', true],
			['/a/**/c', '/a/b/b/c', true],
			['/a/**/**/c', '/a/c', true],
			['/a/***/c', '/a/b/c', true],
			['/a/?', '/a/b', true],
			['/a/?', '/a/bc', false],
			['/a/[bc]', '/a/b', true],
			['/a/[!bc]', '/a/b', false],
			['/a/[!bc]', '/a/d', true],
			['/a/[]]', '/a/]', true],
			['/a/{b,c}/d', '/a/c/d', true],
			['/a/{b,c}/d', '/a/b,c/d', false],
			['/a/b,c', '/a/b,c', true],
			['/a/}', '/a/}', true],
			['/a/\\*', '/a/*', true],
			['/a/\\*', '/a/b', false],
			['/a/.env', '/a/xenv', false],
			['/a/(b)+$', '/a/(b)+$', true],
			['/a/*', '/a/.b', true],
		] as const)
			expect(fits(glob, path), `${glob} ${path}`).to.equal(expected)
		expect(compileGlob('/A', true)!.test('/a')).to.equal(true)
		for (const glob of ['/a/[b', '/a/{b', '/a/[z-a]']) expect(compileGlob(glob, false), glob).to.equal(null)
		for (const path of ['/a/[x]', '/a/{b,c}', '/a/*?', 'a\\b'])
			expect([fits(escapeGlob(path), path), fits(escapeGlob(path), `${path}x`)], path).to.deep.equal([true, false])
	})

	it('the longest plain piece of a glob is in every path that fits', () => {
		for (const [glob, literal] of [
			['/home/me/**', '/home/me/'],
			['/a/**/bcdef', 'bcdef'],
			['/ab/*/c', '/ab/'],
			['/a/**', '/a/'],
			['/x/{bcdefgh,i}/y', '/x/'],
			['/x{a/b', '/x'],
			['/a/[bcdefgh]/xyz', '/xyz'],
			['/a\\*b?c', '/a*b'],
			['/ä/bcd', '/bcd'],
			['**', ''],
		] as const)
			expect(globLiteral(glob, false), glob).to.equal(literal)
		expect(globLiteral('/AB/**', true)).to.equal('/ab/')
	})

	it('a path pattern beyond any path’s length or depth of alternatives is none; one that is lost is told', () => {
		const nested = (depth: number) => `/${'{'.repeat(depth)}a${'}'.repeat(depth)}`
		expect([compileGlob('a'.repeat(4096), false), compileGlob(nested(20), false)]).to.not.include(null)
		expect([compileGlob('a'.repeat(4097), false), compileGlob(nested(21), false)]).to.deep.equal([null, null])
		expect(() => deniedTest([{ glob: '/[a', below: true }])).to.throw('path pattern lost')
	})

	it('what is denied below a place is denied below it alone', () => {
		const at = (below: boolean) => deniedTest([{ glob: '/x/a*', below }])
		expect(['/x/ab', '/x/ab/c', '/y/ab'].map(at(true))).to.deep.equal([true, true, false])
		expect(['/x/ab', '/x/ab/c', '/y/ab'].map(at(false))).to.deep.equal([true, false, false])
	})
})
