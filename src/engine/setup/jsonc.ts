// JSON with comments, read and edited: the one place that loads its library. Used by editors.
// Its main file loads its parts in a way that no bundler can follow.
export {
	applyEdits,
	createScanner,
	findNodeAtLocation,
	getNodeValue,
	modify,
	type Node,
	type ParseError,
	parse,
	parseTree,
} from 'jsonc-parser/lib/esm/main.js'
