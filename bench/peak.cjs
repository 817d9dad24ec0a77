// Preloaded by a bench: writes the process's peak memory in KiB when it ends.
process.on('exit', () => {
	process
		.getBuiltinModule('node:fs')
		.writeFileSync(process.env.GARUDA_BENCH_PEAK, String(process.resourceUsage().maxRSS))
})
