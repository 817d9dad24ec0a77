// The parts of turndown that Garuda uses; the package carries no types.
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
		addRule(name: string, rule: Rule): this
		turndown(html: string): string
	}
}
