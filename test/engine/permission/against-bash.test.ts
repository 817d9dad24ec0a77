// The reading of commands held against bash itself: what bash runs must have been seen by the deny rule.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { bash, type Place, place } from './helpers.ts'

const pieces = fc.constantFrom(
	...[
		'denied',
		'deni',
		'ed',
		' ',
		'  ',
		';',
		'&&',
		'||',
		'|',
		'&',
		'(',
		')',
		'{ ',
		'; }',
		'"',
		"'",
		'`',
		'$(',
		'$((',
		'))',
		'<<E\n',
		'\nE\n',
		"<<'E'\n",
		'>',
		'<<<',
		'#',
	],
	...[
		'\\',
		'\\\n',
		'\n',
		'if ',
		' then ',
		'; fi',
		'${x',
		'}',
		'${x:-',
		'[[ ',
		' ]]',
		'=',
		'x=',
		'eval ',
		'bash -c ',
		'sh',
		'-c',
		'| sh',
		"$'",
		'\\x64',
		'a',
		'echo ',
		'cat ',
		'env ',
	],
	...[
		'X=1 ',
		'command ',
		'exec ',
		'trap ',
		' EXIT',
		'${x@P}',
		'$x',
		'x[',
		'$IFS',
		'{',
		',',
		'coproc ',
		'time ',
		'! ',
		'for x in ',
		' do ',
		'; done',
		'case a in a)',
		' ;; esac',
		'f() ',
		'f',
	],
	...[
		'xargs ',
		'printf ',
		'test -v ',
		'[',
		'let ',
		'((',
		'$[',
		']',
		'-s',
		'alias ',
		'function ',
		'while ',
		'<(',
		'>(',
		'&>a',
		'2>&1',
		'-- ',
		'builtin ',
		'declare -i ',
		'unset ',
		'export ',
		'~',
		'*',
		'?',
	],
)
const names = fc.constantFrom('denied', 'denied a', 'den""ied', '\\denied', "$'\\x64enied'")

describe('permission: against bash', () => {
	let at: Place
	let dir: string
	before(async () => {
		at = await place()
		dir = await mkdtemp(join(tmpdir(), 'garuda-bash-'))
		await mkdir(join(dir, 'bin'))
		await writeFile(join(dir, 'bin', 'denied'), '#!/bin/sh\n: > "$MARK"\n')
		await chmod(join(dir, 'bin', 'denied'), 0o755)
		for (const [name, path] of [
			['bash', '/bin/bash'],
			['sh', '/bin/sh'],
			['env', '/usr/bin/env'],
			['xargs', '/usr/bin/xargs'],
			['cat', '/bin/cat'],
		] as const)
			await symlink(path, join(dir, 'bin', name))
	})
	after(async () => {
		await rm(dir, { recursive: true, force: true })
		await at.close()
	})

	let runs = 0
	/** Whether bash starts the program `denied` for this text; its PATH holds five harmless programs. */
	const bashRuns = async (text: string): Promise<boolean> => {
		const cwd = join(dir, `w${++runs}`)
		await mkdir(cwd)
		const mark = join(dir, `ran${runs}`)
		const env = { PATH: join(dir, 'bin'), MARK: mark }
		spawnSync('/bin/bash', ['--norc', '--noprofile', '-c', text], { cwd, env, timeout: 1500, stdio: 'ignore' })
		return existsSync(mark)
	}

	it('random texts: whatever makes bash run the program is denied or asked', async () => {
		let hits = 0
		await fc.assert(
			fc.asyncProperty(
				fc.array(pieces, { maxLength: 6 }),
				names,
				fc.array(pieces, { maxLength: 5 }),
				async (head, name, tail) => {
					const text = head.join('') + name + tail.join('')
					if (!(await bashRuns(text))) return
					hits++
					expect(
						(await bash(at, text, { deny: ['bash(denied)'], allow: ['bash'] })).decision,
						JSON.stringify(text),
					).not.to.equal('allow')
				},
			),
			{ numRuns: 120, seed: 20261130 },
		)
		expect(hits).to.be.greaterThan(3)
	})

	it('texts that were once missed', async () => {
		for (const text of ['$IFS&>a denied b', '> denied; cat denied | xargs denied*', '$IFS denied', 'denied<&-']) {
			expect(await bashRuns(text), text).to.equal(true)
			expect((await bash(at, text, { deny: ['bash(denied)'] })).decision, text).not.to.equal('allow')
		}
	})
})
