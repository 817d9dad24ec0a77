// The sample project of the tour, as data: used when the user's own folder is empty, too large or not to be copied. Written by scratch.ts.

/** Path → text. Node only, no dependency; `node --test` passes. */
export const sampleFiles: Readonly<Record<string, string>> = {
	'README.md': `# Tea timer

How long each kind of tea should steep, in minutes.

    node --test
`,
	'package.json': `${JSON.stringify(
		{ name: 'tea-timer', version: '1.0.0', private: true, type: 'module', scripts: { test: 'node --test' } },
		null,
		'\t',
	)}\n`,
	'src/steep.js': `// Minutes that a tea should steep.
const minutes = { green: 2, black: 4, herbal: 7 }

// TODO: oolong
export function steep(kind) {
	const found = minutes[kind]
	if (found === undefined) throw new RangeError(\`No tea is called "\${kind}".\`)
	return found
}
`,
	'test/steep.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { steep } from '../src/steep.js'

test('black tea steeps for four minutes', () => {
	assert.equal(steep('black'), 4)
})

test('an unknown tea is an error that names it', () => {
	assert.throws(() => steep('coffee'), /coffee/)
})
`,
}
