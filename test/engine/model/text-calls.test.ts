// Tool calls written as text: each format, what runs, what is told, what is plain text.
import { expect } from 'chai'
import { readTextCalls } from '../../../src/engine/model/text-calls.ts'
import { TextHold } from '../../../src/engine/model/text-hold.ts'
import { tool, tools } from './kit.ts'

const read = { name: 'read_file', input: { path: 'a.txt' } }
const status = { name: 'git_status', input: {} }

const formats: [string, string, object[]][] = [
	['Hermes', '<tool_call>{"name":"read_file","arguments":{"path":"a.txt"}}</tool_call>', [read]],
	[
		'Hermes, repeated',
		'<tool_call>\n{"name":"read_file","arguments":{"path":"a.txt"}}\n</tool_call>\n<tool_call>{"name":"git_status","arguments":{}}</tool_call>',
		[read, status],
	],
	['Hermes, closing tag missing at the end', '<tool_call>{"name":"git_status","arguments":{}}', [status]],
	[
		'Qwen3-Coder',
		'<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=limit>\n10\n</parameter>\n</function>\n</tool_call>',
		[{ name: 'read_file', input: { path: 'a.txt', limit: 10 } }],
	],
	[
		'Qwen3-Coder, opener missing',
		'<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>',
		[read],
	],
	[
		'Qwen3-Coder, raw value with tags',
		'<function=write_file><parameter=path>x</parameter><parameter=content>\n<b>&amp;</b>\n</parameter> text\n\n</parameter></function>',
		[{ name: 'write_file', input: { path: 'x', content: '<b>&amp;</b>\n</parameter> text\n' } }],
	],
	['Llama python tag', '<|python_tag|>{"name":"read_file","parameters":{"path":"a.txt"}}<|eom_id|>', [read]],
	['Llama bare', '{"name": "read_file", "parameters": {"path": "a.txt"}}', [read]],
	[
		'Llama bare, joined',
		'{"name":"read_file","parameters":{"path":"a.txt"}}; {"name":"git_status","parameters":{}}',
		[read, status],
	],
	[
		'Llama 4 list',
		"[read_file(path='a.txt', limit=3), git_status()]",
		[{ name: 'read_file', input: { path: 'a.txt', limit: 3 } }, status],
	],
	['Olmo', '<function_calls>\nread_file(path="a.txt")\ngit_status()\n</function_calls>', [read, status]],
	['Mistral', '[TOOL_CALLS][{"name":"read_file","arguments":{"path":"a.txt"}}]', [read]],
	['Mistral, newer', '[TOOL_CALLS]read_file[ARGS]{"path":"a.txt"}[TOOL_CALLS]git_status[ARGS]{}', [read, status]],
	[
		'DSML',
		'<｜DSML｜tool_calls><｜DSML｜invoke name="read_file"><｜DSML｜parameter name="path" string="true">a.txt</｜DSML｜parameter><｜DSML｜parameter name="limit" string="false">5</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>',
		[{ name: 'read_file', input: { path: 'a.txt', limit: 5 } }],
	],
	[
		'DSML, other bars',
		'<‖DSML‖function_calls>\n<‖DSML‖invoke name="read_file">\n<‖DSML‖parameter name="path" string="true">a.txt</‖DSML‖parameter>\n</‖DSML‖invoke>\n</‖DSML‖function_calls>',
		[read],
	],
	['DSML, no wrapper', '<｜｜DSML｜｜invoke name="git_status"></｜｜DSML｜｜invoke>', [status]],
	[
		'FunctionGemma',
		'<start_function_call>call:read_file{path:<escape>a.txt<escape>,limit:2}<end_function_call>',
		[{ name: 'read_file', input: { path: 'a.txt', limit: 2 } }],
	],
	['fenced JSON', '```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```', [read]],
	['Groq', '<function=read_file{"path":"a.txt"}</function>', [read]],
	['arguments as text', '<tool_call>{"name":"read_file","arguments":"{\\"path\\":\\"a.txt\\"}"}</tool_call>', [read]],
	[
		'another spelling of the name',
		'<tool_call>{"name":"functions.Read_File","arguments":{"path":"a.txt"}}</tool_call>',
		[read],
	],
]

describe('text calls', () => {
	for (const [name, text, calls] of formats) {
		it(`reads ${name}, runs it only where it may`, () => {
			expect(readTextCalls(text, tools, 'whole')).to.deep.equal({ calls, text: '', leaked: false })
			const off = readTextCalls(text, tools, 'off')
			expect(off.calls).to.deep.equal([])
			expect(off.leaked, 'never silent when it does not run').to.equal(true)
			// The same call to a tool that this request does not have is text.
			expect(readTextCalls(text, [tool('other')], 'whole').calls).to.deep.equal([])
		})

		it(`holds ${name} back from the screen, however it is split`, () => {
			for (const size of [1, 3, 7, text.length]) {
				const hold = new TextHold()
				let shown = ''
				for (let at = 0; at < text.length; at += size) shown += hold.push(text.slice(at, at + size)).text
				expect(shown, `pieces of ${size}`).to.equal('')
				expect(hold.rest).to.equal(text)
			}
		})
	}

	const leak =
		'I will create it.\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhi\n</parameter>\n</function>\n</tool_call>'
	const write = { name: 'write_file', input: { path: 'a.txt', content: 'hi' } }

	it('L01 a call after words is told as leaked by default and runs on its own lines when allowed', () => {
		expect(readTextCalls(leak, tools, 'whole')).to.deep.equal({ calls: [], text: leak, leaked: true })
		expect(readTextCalls(leak, tools, 'lines')).to.deep.equal({
			calls: [write],
			text: 'I will create it.',
			leaked: false,
		})
	})

	it('L01 a call in the middle of a sentence, in a fence or in quotes never runs', () => {
		const one = '<tool_call>{"name":"git_status","arguments":{}}</tool_call>'
		for (const mode of ['whole', 'lines'] as const) {
			expect(readTextCalls(`Then ${one} is written.`, tools, mode).calls).to.deep.equal([])
			expect(readTextCalls(`Write:\n\`\`\`xml\n${one}\n\`\`\`\nand so on`, tools, mode))
				.to.include({ leaked: false })
				.and.deep.include({ calls: [] })
			expect(readTextCalls(`Use \`${one}\` for it.`, tools, mode))
				.to.include({ leaked: false })
				.and.deep.include({ calls: [] })
		}
	})

	it('L01 cut or malformed markup that names a tool is leaked, never repaired', () => {
		for (const text of [
			'<tool_call>{"name":"read_file","arguments":{"path":"a',
			'<function=write_file>\n<parameter=path>\na',
			'[TOOL_CALLS][{"name":"read_file","arguments":{"path":',
		])
			for (const mode of ['whole', 'lines'] as const)
				expect(readTextCalls(text, tools, mode)).to.deep.equal({ calls: [], text, leaked: true })
	})

	it('plain text stays plain: prose, JSON answers, lists, code', () => {
		for (const text of [
			'a < b and c > d',
			'{"name":"x","age":3}',
			'[1, 2, 3]',
			'[link](http://x)',
			'```json\n{"a":1}\n```',
			'Use <tool_call> for calls.',
			'[print(x), y]',
		])
			expect(readTextCalls(text, tools, 'lines'), text).to.deep.equal({ calls: [], text, leaked: false })
	})

	it('Python forms are literals only: names, sums and calls inside are no arguments', () => {
		for (const args of [
			'path=open("x")',
			'path=a',
			'path="a"+"b"',
			'"a.txt"',
			'path=__import__("os")',
			'path=[x for x in y]',
		])
			expect(readTextCalls(`[read_file(${args})]`, tools, 'whole').calls, args).to.deep.equal([])
	})

	it('a key named __proto__ stays a plain key', () => {
		const { calls } = readTextCalls('<function=read_file><parameter=__proto__>x</parameter></function>', tools, 'whole')
		expect(Object.getPrototypeOf(calls[0]!.input)).to.equal(Object.prototype)
		expect(Object.keys(calls[0]!.input)).to.deep.equal(['__proto__'])
	})

	it('many openers that never close are read in little time', () => {
		const text = '<tool_call>{"a":'.repeat(30_000)
		const start = performance.now()
		readTextCalls(text, tools, 'whole')
		new TextHold().push(text)
		expect(performance.now() - start).to.be.lessThan(1_500)
	})

	it('words pass through the hold at once, and markers in code do not stop them', () => {
		for (const text of [
			'Hello world',
			'a <b> c [d] `e`',
			'Use `<tool_call>` here',
			'```\n<tool_call>\n```\ndone',
			'{"a": 1} is JSON'.padEnd(300, '.'),
		]) {
			const hold = new TextHold()
			let shown = ''
			for (const char of text) shown += hold.push(char).text
			expect(shown + hold.rest, text).to.equal(text)
			expect(hold.rest.length, text).to.be.lessThan(24)
		}
	})

	it('a leading <think> part is told apart, in any split', () => {
		const text = '<think>deep\nthought</think>\n\nThe answer'
		for (const size of [1, 4, 100]) {
			const hold = new TextHold()
			let [shown, thought] = ['', '']
			for (let at = 0; at < text.length; at += size) {
				const got = hold.push(text.slice(at, at + size))
				shown += got.text
				thought += got.thinking
			}
			hold.end()
			expect([thought, shown.trim(), hold.text.trim()]).to.deep.equal(['deep\nthought', 'The answer', 'The answer'])
		}
	})
})
