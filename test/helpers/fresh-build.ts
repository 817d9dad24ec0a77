// Loaded by mocha first: tests over the built bin must never run against an older build.
export async function mochaGlobalSetup(): Promise<void> {
	const [major, minor] = process.versions.node.split('.').map(Number)
	if (major! < 22 || (major === 22 && minor! < 20))
		throw new Error(`tests need Node 22.20 or newer, not ${process.version}`)
	const { built } = (await import(new URL('../../scripts/state.mjs', import.meta.url).href)) as { built(): boolean }
	if (!built()) throw new Error('dist is not made from these sources: npm run build')
}
