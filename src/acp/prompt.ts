// The editor's content blocks as a prompt of Garuda's. Pure. Between session/prompt and the engine.
import { isAbsolute, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { oneLine, type PromptInput } from '../engine/index.ts'
import { invalidParams } from './errors.ts'

/**
 * Text stays text. A link to a file in one of the roots becomes a mention, so the file is attached under the usual rules;
 * any other link stays a name and an address. Embedded text (a selection) is context, like a paste. Throws -32602 for
 * what the agent did not offer to take, and for an empty prompt.
 */
export function promptInput(blocks: readonly ContentBlock[], roots: readonly string[]): PromptInput {
	let text = ''
	const context: NonNullable<PromptInput['context']> = []
	/** A link must not melt into the words around it. */
	let afterLink = false
	const add = (word: string): void => {
		text += text === '' || /\s$/.test(text) ? word : ` ${word}`
		afterLink = true
	}
	for (const block of blocks)
		switch (block.type) {
			case 'text':
				text += afterLink && /^[\p{L}\p{N}]/u.test(block.text) ? ` ${block.text}` : block.text
				afterLink = false
				break
			case 'resource_link':
				add(mention(block.uri, roots) ?? `${oneLine(block.name, 200)} (${oneLine(block.uri, 2000)})`)
				break
			case 'resource': {
				const { resource } = block
				add(`[${oneLine(resource.uri, 2000)}]`)
				if ('text' in resource) context.push({ label: oneLine(resource.uri, 2000), text: resource.text })
				else add('(binary content, left out)')
				break
			}
			default:
				throw invalidParams(`this agent takes no ${block.type} in a prompt`)
		}
	if (text.trim() === '' && context.length === 0) throw invalidParams('the prompt is empty')
	return { text, ...(context.length > 0 ? { context } : {}) }
}

/** `@"path"` for a file or folder in a root (with the lines that the link names), else null. */
function mention(uri: string, roots: readonly string[]): string | null {
	let path: string
	let lines = ''
	try {
		const url = new URL(uri)
		if (url.protocol !== 'file:') return null
		const range = /^#L(\d+)(?:[-:]L?(\d+))?$/.exec(url.hash)
		if (range) lines = ` (lines ${range[1]}${range[2] ? `-${range[2]}` : ''})`
		url.hash = ''
		url.search = ''
		path = fileURLToPath(url)
	} catch {
		return null
	}
	if (/[\u0000-\u001f\u007f]/.test(path)) return null
	for (const [i, root] of roots.entries()) {
		const inside = relative(root, path)
		if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) continue
		const word = i === 0 ? inside || '.' : path
		return `@"${word.replace(/["\\]/g, '\\$&')}"${lines}`
	}
	return null
}
