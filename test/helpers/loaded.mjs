// Preloaded with --import: writes the URL of every module that a process loads to the file in GARUDA_TEST_LOADED, and at the end
// `file:///undici` where Node loaded its own.
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const file = process.env.GARUDA_TEST_LOADED
registerHooks({
	load(url, context, next) {
		appendFileSync(file, `${url}\n`)
		return next(url, context)
	},
})

process.on('exit', () => {
	if (process.moduleLoadList.some((one) => one.includes('undici'))) appendFileSync(file, 'file:///undici\n')
})
