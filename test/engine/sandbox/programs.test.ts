// Which program is taken where several could be: absolute, runnable, outside the root, written by nobody else.
import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect } from 'chai'
import { checkedBubblewrap, findProgram } from '../../../src/engine/sandbox/programs.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'

describe('sandbox: programs', () => {
	afterEach(removeTemp)
	const place = (name: string, mode = 0o755, folderMode = 0o755): string => {
		const folder = join(tempDir(), 'bin')
		mkdirSync(folder)
		writeFileSync(join(folder, name), '#!/bin/sh\n', { mode })
		chmodSync(join(folder, name), mode)
		chmodSync(folder, folderMode)
		return folder
	}

	it('the first entry of PATH that may be trusted is taken', () => {
		const good = place('tool')
		const path = join(good, 'tool')
		for (const [what, entry] of [
			['a relative entry', relative(process.cwd(), place('tool'))],
			['an empty entry', ''],
			['no program', place('other')],
			['not runnable', place('tool', 0o644)],
			['writable by others', place('tool', 0o757)],
			['in a folder that others write', place('tool', 0o755, 0o777)],
		] as const)
			expect(findProgram('tool', `${entry}:${good}`, []), what).to.equal(path)
		expect(findProgram('tool', good, [good])).to.equal(undefined)
		expect(findProgram('tool', undefined, [])).to.equal(undefined)
		// A link elsewhere that leads into the root is the root's.
		const outside = join(tempDir(), 'bin')
		mkdirSync(outside)
		symlinkSync(path, join(outside, 'tool'))
		expect(findProgram('tool', outside, [realpathSync(good)])).to.equal(undefined)
		expect(findProgram('tool', outside, [])).to.equal(join(outside, 'tool'))
		mkdirSync(join(good, 'folder'))
		expect(findProgram('folder', good, [])).to.equal(undefined)
	})

	it('a bubblewrap that is named must be absolute and no other’s', () => {
		expect(checkedBubblewrap(join(place('bwrap'), 'bwrap'))).to.be.a('string')
		expect(checkedBubblewrap(relative(process.cwd(), join(place('bwrap'), 'bwrap')))).to.equal(undefined)
		expect(checkedBubblewrap(join(place('bwrap', 0o775), 'bwrap'))).to.equal(undefined)
		expect(checkedBubblewrap(join(place('bwrap', 0o755, 0o775), 'bwrap'))).to.equal(undefined)
	})
})
