// The count of a sandbox's processes: its own, never the machine's.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { namespaceCount } from '../../../src/engine/sandbox/processes.ts'
import { findBubblewrap } from '../../../src/engine/sandbox/programs.ts'
import { skip } from '../../helpers/skip.ts'

describe('sandbox: the count of processes', () => {
	it('is that of the sandbox once its /proc is there', async function () {
		const bwrap = findBubblewrap()
		if (!bwrap) skip(this, 'bubblewrap is not installed')
		const flags = [
			'--unshare-all',
			'--die-with-parent',
			'--ro-bind',
			'/',
			'/',
			'--dev',
			'/dev',
			'--proc',
			'/proc',
			'--info-fd',
			'3',
			'--',
		]
		const child = spawn(bwrap, [...flags, '/bin/sh', '-c', 'sleep 30 & echo ready; wait'], {
			stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
		})
		try {
			let told = ''
			child.stdio[3]!.on('data', (part: Buffer) => (told += part))
			await Promise.all([once(child.stdout!, 'data'), once(child.stdio[3]!, 'end')])
			const first = Number(/"child-pid": (\d+)/.exec(told)?.[1])
			// bubblewrap's first process, the shell and its sleep.
			expect(namespaceCount(first)).to.equal(3)
		} finally {
			child.kill('SIGKILL')
		}
	})

	it('is not told while the /proc is still that of the machine', () => {
		// A sandbox that bubblewrap still builds looks like this process: in the root that the machine has.
		expect(namespaceCount(process.pid)).to.equal(undefined)
	})
})
