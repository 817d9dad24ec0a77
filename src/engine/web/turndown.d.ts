// The parts of turndown and its plugin that Garuda uses; the packages carry no types.
declare module 'turndown' {
	interface TurndownNode {
		nodeName: string
		textContent: string
		firstChild: TurndownNode | null
		parentNode: TurndownNode | null
		childNodes: ArrayLike<TurndownNode>
		getAttribute(name: string): string | null
	}
	interface Rule {
		filter: string | string[] | ((node: TurndownNode) => boolean)
		replacement(content: string, node: TurndownNode): string
	}
	export default class TurndownService {
		constructor(options?: Record<string, string>)
		use(plugin: unknown): this
		addRule(name: string, rule: Rule): this
		turndown(html: string): string
	}
}
declare module 'turndown-plugin-gfm' {
	export const tables: unknown
	export const strikethrough: unknown
	export const taskListItems: unknown
}
