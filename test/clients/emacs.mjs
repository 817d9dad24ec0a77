// Emacs with agent-shell over this build: node test/clients/emacs.mjs <folder with agent-shell, acp.el and shell-maker> [emacs]
// Batch Emacs takes the entry of docs/editors.md, starts `garuda acp` (a script in the place of a model), allows one edit and
// denies another. Exit 0 and one line when all of it arrived, 1 and what differs when not, 2 for wrong usage.
import { spawn, spawnSync } from 'node:child_process'
import {
	chmodSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	realpathSync,
	rmSync,
	writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const repository = join(here, '..', '..')
const [folder, emacs = 'emacs'] = process.argv.slice(2)
const packages = { 'agent-shell': 'agent-shell.el', 'acp.el': 'acp.el', 'shell-maker': 'shell-maker.el' }
const missing = Object.entries(packages).filter(([name, file]) => !existsSync(join(folder ?? '', name, file)))
if (!folder || missing.length > 0) {
	const sources = Object.keys(packages).map((name) => `  git clone https://github.com/xenodium/${name}`)
	console.error(
		`usage: node test/clients/emacs.mjs <folder> [emacs]\n${folder ? `not in ${folder}: ${missing.map(([name]) => name).join(', ')}\n` : ''}The folder holds:\n${sources.join('\n')}`,
	)
	process.exit(2)
}
const version = /GNU Emacs (\d+)(\S*)/.exec(spawnSync(emacs, ['--version'], { encoding: 'utf8' }).stdout ?? '')
if (!version || Number(version[1]) < 29) {
	console.error(
		`${emacs}: ${version ? `this is Emacs ${version[1]}${version[2]}` : 'not found'}; agent-shell needs 29.1`,
	)
	process.exit(2)
}

const base = realpathSync(mkdtempSync(join(tmpdir(), 'garuda-emacs-')))
const at = (...parts) => join(base, ...parts)
const file = (path, content) => {
	mkdirSync(dirname(at(path)), { recursive: true })
	writeFileSync(at(path), content)
}

/** The entry that the documentation tells people to paste. */
const entry = /## Emacs[\s\S]*?```elisp\n([\s\S]*?)```/.exec(
	readFileSync(join(repository, 'docs', 'editors.md'), 'utf8'),
)?.[1]
const write = (path) => ({ calls: [{ name: 'write_file', input: { path, content: 'from Emacs\n' } }] })
const script = {
	steps: [
		{ text: 'Hello, Emacs.', deltas: 3 },
		{ text: 'I write a file.', ...write('allowed.txt') },
		{ text: 'It is written.' },
		write('denied.txt'),
		{ text: 'Then not.' },
	],
}

async function main() {
	file('entry.el', entry)
	file('script.json', JSON.stringify(script))
	file('bin/garuda', `#!/bin/sh\nexec "${process.execPath}" "${join(repository, 'bin', 'run.js')}" "$@"\n`)
	chmodSync(at('bin/garuda'), 0o755)
	file('project/a.txt', 'hello\n')
	mkdirSync(at('home'))
	const paths = Object.keys(packages).flatMap((name) => ['-L', resolve(folder, name)])
	const child = spawn(emacs, ['-Q', '--batch', ...paths, '-l', join(here, 'emacs.el')], {
		cwd: at('project'),
		env: {
			PATH: `${at('bin')}:${process.env.PATH}`,
			HOME: at('home'),
			LANG: 'C.UTF-8',
			TERM: 'dumb',
			GARUDA_MODEL_SCRIPT: at('script.json'),
			EMACS_ENTRY: at('entry.el'),
			EMACS_REPORT: at('report.json'),
			EMACS_ANSWERS: 'allow_once,reject_once',
			EMACS_PROMPTS: 'say hello\nwrite a file\nwrite another',
		},
		stdio: ['ignore', 'pipe', 'pipe'],
	})
	let said = ''
	for (const stream of [child.stdout, child.stderr])
		stream.setEncoding('utf8').on('data', (text) => {
			said += text
		})
	const code = await new Promise((done) => {
		child.on('error', () => done('not started'))
		child.on('close', done)
	})
	if (code !== 0 || !existsSync(at('report.json'))) return [`Emacs ended with ${code}:\n${said.slice(-4000)}`]

	const seen = JSON.parse(readFileSync(at('report.json'), 'utf8'))
	const of = (kind) => seen.filter(([one]) => one === kind).map(([, text]) => text)
	const [text, shown, asked] = [of('text').join(''), of('buffer').join(''), of('asked')]
	const wrong = []
	const want = (ok, what) => ok || wrong.push(what)
	want(text.includes('Hello, Emacs.') && shown.includes('Hello, Emacs.'), `the answer did not arrive: ${text}`)
	want(of('end').length === 3 && of('end').every((one) => one === 'end_turn'), `the turns ended: ${of('end')}`)
	want(asked.length === 2, `questions asked: ${JSON.stringify(asked)}`)
	want(asked[0]?.includes('allowed.txt'), `the question names no file: ${asked[0]}`)
	want(of('answered').length === 2, `answers sent: ${JSON.stringify(of('answered'))}`)
	want(existsSync(at('project/allowed.txt')), 'the allowed edit was not written')
	want(!existsSync(at('project/denied.txt')), 'the denied edit was written')
	want(text.includes('It is written.') && text.includes('Then not.'), `the answers after the questions: ${text}`)
	const left = await leftBehind()
	want(left.length === 0, `processes left behind: ${left}`)
	return wrong
}

/** What still runs in the folder a moment after Emacs ended (Linux). */
async function leftBehind() {
	for (let tries = 0; ; tries++) {
		const found = existsSync('/proc/self/environ')
			? readdirSync('/proc').filter((pid) => {
					try {
						return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(base)
					} catch {
						return false
					}
				})
			: []
		if (found.length === 0 || tries === 50) return found
		await new Promise((done) => setTimeout(done, 100))
	}
}

const begun = performance.now()
try {
	const wrong = await main()
	const what = `Emacs ${version[1]}${version[2]}, agent-shell ${/^;; Version: (\S+)/m.exec(readFileSync(join(folder, 'agent-shell', 'agent-shell.el'), 'utf8'))?.[1]}`
	if (wrong.length === 0)
		console.log(
			`PASS ${what}: 3 prompts answered, 1 edit allowed, 1 denied, no process left (${((performance.now() - begun) / 1000).toFixed(1)} s)`,
		)
	else console.log(`FAIL ${what}\n${wrong.map((one) => `  ${one}`).join('\n')}`)
	process.exitCode = wrong.length === 0 ? 0 : 1
} finally {
	rmSync(base, { recursive: true, force: true })
}
