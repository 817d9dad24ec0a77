// The todo_write tool: the agent's own list of steps, kept for the session. Off by default.
import type { Tool, ToolState } from '../ports.ts'
import { oneLine } from '../text.ts'
import { jsonInput } from './json-input.ts'

interface Input {
	items: ToolState['todo']
}

const input = jsonInput<Input>({
	type: 'object',
	properties: {
		items: {
			maxItems: 100,
			type: 'array',
			items: {
				type: 'object',
				properties: {
					text: { type: 'string', minLength: 1, maxLength: 500 },
					status: { type: 'string', enum: ['open', 'doing', 'done'] },
				},
				required: ['text', 'status'],
				additionalProperties: false,
			},
		},
	},
	required: ['items'],
	additionalProperties: false,
})

const signs = { open: '[ ]', doing: '[~]', done: '[x]' } as const

/** Replaces the list. No effect outside the session. */
export const todoWriteTool: Tool<Input, ToolState['todo']> = {
	name: 'todo_write',
	description:
		'Keep a list of the steps of a long task. Each call replaces the whole list; at most one item is "doing".',
	input,
	readOnly: false,
	async plan({ items }) {
		const todo = items.map(({ text, status }) => ({ text: oneLine(text, 500), status }))
		const preview = todo.map(({ text, status }) => `${signs[status]} ${text}`).join('\n')
		return {
			info: { title: 'Update the list of steps', kind: 'think', access: 'none', paths: [], key: 'todo_write', preview },
			data: todo,
		}
	},
	async run({ info, data }, ctx) {
		ctx.state.todo = data
		const open = data.filter(({ status }) => status !== 'done').length
		return {
			status: 'ok',
			text: `${data.length} steps, ${open} open.\n${info.preview ?? ''}`.trimEnd(),
			data: { todo: data.map((item) => ({ ...item })) },
		}
	},
}
