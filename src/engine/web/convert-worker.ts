// A page's HTML to Markdown, in a thread of its own that can be ended: a page may be made so that this never returns.
import { parentPort, workerData } from 'node:worker_threads'
import TurndownService, { type TurndownNode } from 'turndown'
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
	service.addRule('strike', { filter: ['del', 's', 'strike'], replacement: (content) => `~~${content}~~` })
	// Tables by hand: bars and line breaks in a cell would break its row.
	service.addRule('cell', {
		filter: ['th', 'td'],
		replacement: (content) =>
			` ${content
				.trim()
				.replace(/\s*\n\s*/g, ' ')
				.replace(/(?<!\\)\|/g, '\\|')} |`,
	})
	service.addRule('row', {
		filter: 'tr',
		replacement: (content, node) => `\n|${content}${isFirstRow(node) ? `\n|${' --- |'.repeat(cells(node))}` : ''}`,
	})
	service.addRule('rows', { filter: ['thead', 'tbody', 'tfoot'], replacement: (content) => content })
	service.addRule('table', { filter: 'table', replacement: (content) => `\n\n${content.trim()}\n\n` })
	const markdown = service
		.turndown(page.html)
		.replace(/[ \t]+$/gm, '')
		.replace(/\n{3,}/g, '\n\n')
		.trim()
	return { markdown, title: page.title, cut: page.cut }
}

const children = (node: TurndownNode): TurndownNode[] => Array.from(node.childNodes)

const cells = (row: TurndownNode): number => children(row).filter(({ nodeName }) => /^T[HD]$/.test(nodeName)).length

const isFirstRow = (row: TurndownNode): boolean => {
	const part = row.parentNode
	if (!part || children(part).find(({ nodeName }) => nodeName === 'TR') !== row) return false
	if (part.nodeName === 'TABLE' || !part.parentNode) return true
	return children(part.parentNode).find(({ nodeName }) => /^T(?:R|HEAD|BODY|FOOT)$/.test(nodeName)) === part
}

if (parentPort && workerData?.garudaConvert) {
	const port = parentPort
	try {
		port.postMessage({ result: toMarkdown(workerData.garudaConvert as ConvertJob) })
	} catch (error) {
		port.postMessage({ error: (error as Error).message })
	}
}
