#!/usr/bin/env -S node --import tsx
// The same verbs from the TypeScript sources, for work on Garuda itself: no build, no manifest.
import { fileURLToPath } from 'node:url'
import { execute } from '@oclif/core'

const args = process.argv.slice(2)
const first = args[0]
if (first === undefined || (first.startsWith('-') && !['--help', '-h', '--version'].includes(first)))
	args.unshift('chat')
await execute({
	args,
	development: true,
	dir: import.meta.url,
	loadOptions: { root: fileURLToPath(new URL('..', import.meta.url)), ignoreManifest: true },
})
