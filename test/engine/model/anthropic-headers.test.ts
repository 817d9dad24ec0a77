// The headers that the build gives the SDK behave as the platform's own do, where the SDK uses them.
import { expect } from 'chai'
import { Headers as Own } from '../../../src/engine/model/anthropic-headers.ts'

type Either = Pick<Own, 'append' | 'delete' | 'get' | 'has' | 'set' | 'entries' | 'keys' | 'values' | 'forEach'> &
	Iterable<[string, string]>

describe('headers of the Anthropic adapter', () => {
	const both = (...acts: ((headers: Either) => unknown)[]) => {
		const seen = (headers: Either) => {
			try {
				const said = acts.map((act) => act(headers))
				const each: [string, string][] = []
				headers.forEach((value, name) => {
					each.push([name, value])
				})
				return { said, all: [...headers], each, names: [...headers.keys()], values: [...headers.values()] }
			} catch (error) {
				return (error as Error).name
			}
		}
		const theirs = seen(new Headers() as unknown as Either)
		expect(seen(new Own()), acts.join('; ')).to.deep.equal(theirs)
		return theirs
	}

	it('do what the platform’s do: cases, repeated names, order, blanks', () => {
		both((h) => h.get('missing'))
		both(
			(h) => h.set('X-Api-Key', 'a'),
			(h) => h.set('x-api-key', 'b'),
			(h) => h.get('X-API-KEY'),
		)
		both(
			(h) => h.append('Accept', 'a'),
			(h) => h.append('accept', ' b\t'),
			(h) => h.append('B', ''),
			(h) => h.has('ACCEPT'),
		)
		both(
			(h) => h.set('z', '1'),
			(h) => h.set('a', '2'),
			(h) => h.append('m', '3'),
			(h) => h.delete('Z'),
			(h) => h.has('z'),
		)
		both(
			(h) => h.set('n', 1 as never),
			(h) => h.get('n'),
		)
		both((h) => h.set('caf\u00e9'.slice(0, 3), '\u00e9'))
	})

	it('refuse a name or value that would end the line, and do not tell the value', () => {
		const thrown = [
			both((h) => h.set('a b', 'x')),
			both((h) => h.append('', 'x')),
			both((h) => h.set('x\r\nhost', 'evil')),
			both((h) => h.set('x', 'a\r\nhost: evil')),
			both((h) => h.append('x', 'a\0b')),
			both((h) => h.set('x', '\u20ac')),
			both((h) => h.get('a:b')),
		]
		expect(thrown.every((one) => one === 'TypeError')).to.equal(true)
		expect(() => new Own().set('x-api-key', 'sk-secret\nhost: evil')).to.throw(TypeError, /^(?!.*sk-secret)/)
	})

	it('are made of a record, of pairs, or of the platform’s own', () => {
		for (const from of [
			{ A: '1', b: '2' },
			[
				['A', '1'],
				['b', '2'],
			] as [string, string][],
			new Headers({ A: '1', b: '2' }),
		])
			expect([...new Own(from as Record<string, string>)]).to.deep.equal([
				['a', '1'],
				['b', '2'],
			])
	})
})
