// The editor's content blocks as a prompt of Garuda's. Pure. Between session/prompt and the engine.
import { isAbsolute, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { type Image, imageFromBase64, oneLine, type PromptInput, tooManyImages } from '../engine/index.ts'
import { invalidParams } from './errors.ts'

/** The editor's pictures among the blocks: image blocks, and embedded files that say they are images. Not looked at yet. */
function pictures(blocks: readonly ContentBlock[]): { data: string; name: string }[] {
	const found: { data: string; name: string }[] = []
	for (const block of blocks) {
		const name = (uri: string | null | undefined) => nameIn(uri) ?? `image ${found.length + 1}`
		if (block.type === 'image') found.push({ data: block.data, name: name(block.uri) })
		else if (isPicture(block)) found.push({ data: block.resource.blob, name: name(block.resource.uri) })
	}
	return found
}

type Blob = Extract<ContentBlock, { type: 'resource' }> & { resource: { blob: string; uri: string } }
const isPicture = (block: ContentBlock): block is Blob =>
	block.type === 'resource' && 'blob' in block.resource && /^image\//i.test(block.resource.mimeType ?? '')

/** The file's name at the end of an address, for a label. */
function nameIn(uri: string | null | undefined): string | null {
	if (!uri || !URL.canParse(uri)) return null
	const last = new URL(uri).pathname.split('/').at(-1) ?? ''
	try {
		return oneLine(decodeURIComponent(last), 120) || null
	} catch {
		return oneLine(last, 120) || null
	}
}

/** The prompt with its pictures checked. Rejects with -32602 that says which one cannot be sent and why; nothing is sent then. */
export async function withImages(input: PromptInput, blocks: readonly ContentBlock[]): Promise<PromptInput> {
	const images: Image[] = []
	for (const { data, name } of pictures(blocks)) {
		const image = await imageFromBase64(data, name)
		if ('refused' in image) throw invalidParams(image.refused)
		images.push(image)
	}
	const many = tooManyImages(images)
	if (many !== null) throw invalidParams(many)
	return images.length > 0 ? { ...input, images } : input
}

/**
 * Text stays text. A link to a file in one of the roots becomes a mention, so the file is attached under the usual rules;
 * any other link stays a name and an address. Embedded text (a selection) is context, like a paste. Pictures are added by
 * `withImages`. Throws -32602 for what the agent did not offer to take, and for an empty prompt.
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
				if (isPicture(block)) break
				if ('text' in resource) context.push({ label: oneLine(resource.uri, 2000), text: resource.text })
				else add('(binary content, left out)')
				break
			}
			case 'image':
				break
			default:
				throw invalidParams(`this agent takes no ${block.type} in a prompt`)
		}
	if (text.trim() === '' && context.length === 0 && pictures(blocks).length === 0)
		throw invalidParams('the prompt is empty')
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
