// What Garuda uses of picomatch, which ships no types.
declare module 'picomatch' {
	interface Options {
		dot?: boolean
		nocase?: boolean
		basename?: boolean
		strictBrackets?: boolean
	}
	function picomatch(glob: string, options?: Options): (path: string) => boolean
	namespace picomatch {
		function scan(glob: string): { base: string; glob: string; isGlob: boolean }
	}
	export default picomatch
}
