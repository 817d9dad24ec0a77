// A page's HTML to Markdown, in a thread of its own that can be ended: a page may be made so that this never returns.
import { parentPort, workerData } from 'node:worker_threads'
import TurndownService, { type TurndownNode } from 'turndown'
import { strikethrough, tables, taskListItems } from 'turndown-plugin-gfm'
import { cleanHtml } from './clean-html.ts'

export interface ConvertJob {
	html: string
	/** For relative links. */
	url: string
}
export interface ConvertResult {
	markdown: string
	title: string
	cut: boolean
}

/** Pure; may take long or overflow the stack for a hostile page. */
export const toMarkdown = (job: ConvertJob): ConvertResult => {
	const page = cleanHtml(job.html, job.url)
	const service = new TurndownService({
		headingStyle: 'atx',
		codeBlockStyle: 'fenced',
		bulletListMarker: '-',
		emDelimiter: '*',
		hr: '---',
	})
	service.use([tables, strikethrough, taskListItems])
	// The plugin writes one tilde and leaves | and line breaks in cells, which break the row.
	service.addRule('strike', { filter: ['del', 's', 'strike'], replacement: (content) => `~~${content}~~` })
	service.addRule('cell', {
		filter: ['th', 'td'],
		replacement: (content, node) => {
			const text = content
				.trim()
				.replace(/\s*\n\s*/g, ' ')
				.replace(/(?<!\\)\|/g, '\\|')
			return `${isFirst(node) ? '| ' : ' '}${text} |`
		},
	})
	const markdown = service
		.turndown(page.html)
		.replace(/[ \t]+$/gm, '')
		.replace(/\n{3,}/g, '\n\n')
		.trim()
	return { markdown, title: page.title, cut: page.cut }
}

const isFirst = (node: TurndownNode): boolean => {
	const cells = node.parentNode?.childNodes
	for (let at = 0; cells && at < cells.length; at++) if (/^T[HD]$/.test(cells[at]!.nodeName)) return cells[at] === node
	return true
}

if (parentPort && workerData?.garudaConvert) {
	const port = parentPort
	try {
		port.postMessage({ result: toMarkdown(workerData.garudaConvert as ConvertJob) })
	} catch (error) {
		port.postMessage({ error: (error as Error).message })
	}
}
