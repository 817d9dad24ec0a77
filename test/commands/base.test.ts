import { expect } from 'chai'
import { nearest, optionalValues } from '../../src/base.ts'

describe('the words of a command line', () => {
	it('-p and -r may stand without a value; a value that begins with a dash is kept', () => {
		const flags = ['-p', '--print', '-r', '--resume']
		for (const [argv, expected] of [
			[
				['-p', 'fix it'],
				['-p', 'fix it'],
			],
			[['-p'], ['-p', '']],
			[
				['-p', '--output-format', 'json'],
				['-p', '', '--output-format', 'json'],
			],
			[
				['-p', '-m', 'x'],
				['-p', '', '-m', 'x'],
			],
			[
				['-p', '- fix the list'],
				['-p', '- fix the list'],
			],
			[
				['-p', '--help me with this'],
				['-p', '--help me with this'],
			],
			[
				['-p', '-1'],
				['-p', '-1'],
			],
			[
				['--print', '--model=x'],
				['--print=', '--model=x'],
			],
			[['--resume'], ['--resume=']],
			[
				['-r', 'abc', '-p', 'x'],
				['-r', 'abc', '-p', 'x'],
			],
			[
				['-m', 'x', '--', '-p'],
				['-m', 'x', '--', '-p'],
			],
		] as const)
			expect(optionalValues(argv, flags), argv.join(' ')).to.deep.equal(expected)
	})

	it('the nearest name is found within a few slips, and nothing else', () => {
		const names = ['chat', 'acp', 'setup', 'init', 'policy', 'audit']
		expect(nearest('caht', names)).to.equal('chat')
		expect(nearest('setpu', names)).to.equal('setup')
		expect(nearest('polcy', names)).to.equal('policy')
		expect(nearest('pol', names)).to.equal('policy')
		expect(nearest('deploy', names)).to.equal(undefined)
		expect(nearest('x', names)).to.equal(undefined)
	})
})
