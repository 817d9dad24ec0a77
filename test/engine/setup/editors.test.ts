// The editors' entries: printed, or put into a configuration of which everything else stays.
import {
	chmodSync,
	existsSync,
	lstatSync,
	mkdirSync,
	readFileSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { editorEntries } from '../../../src/engine/setup/editor-entries.ts'
import { type EditorFlags, editorStates, setupEditors, withEntry } from '../../../src/engine/setup/editors.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'
import { person } from './fixture.ts'

const launcher = { command: 'garuda', args: ['acp'] }
const make = () => ({ home: tempDir(), env: {}, platform: 'linux' })
type Place = ReturnType<typeof make>
const entry = (place: Place, name: string) => editorEntries(place, launcher).find((one) => one.name === name)!

async function run(place: Place, flags: Partial<EditorFlags>, answers: boolean[] | null = []) {
	const said: string[] = []
	const ask = answers && person(answers)
	await setupEditors(place, launcher, { editors: [], ...flags }, ask, (text) => void said.push(text))
	return [...said, ...(ask?.asked ?? [])].join('\n')
}

const put = (path: string, text: string) => {
	mkdirSync(dirname(path), { recursive: true })
	writeFileSync(path, text)
	return path
}

const commented = `// my settings
{
	"theme": "One Dark", // dark
	/* agents */
	"agent_servers": {
		"Other": { "command": "other" }, // keep
	},
	"acp.agents": {},
}
`

describe('setup: editors', () => {
	afterEach(removeTemp)

	it('prints an entry for each of the five, and writes nothing', async () => {
		const place = make()
		const text = await run(place, {})
		for (const part of [
			'settings.json',
			'agent_servers',
			'acp.agents',
			'~/.jetbrains/acp.json',
			'extend("opencode"',
			'agent-shell-make-agent-config',
		])
			expect(text).to.include(part)
		expect(text).to.include('auto-approve off')
		expect(existsSync(join(place.home, '.config'))).to.equal(false)
	})

	it('the printed JSON is what is written into a file that is not there', async () => {
		const place = make()
		for (const name of ['zed', 'vscode', 'jetbrains']) {
			const { file, path } = entry(place, name)
			await run(place, { editors: [name], write: true }, [true])
			const value = JSON.parse(readFileSync(file!, 'utf8'))
			expect(path.reduce((inner, step) => inner[step], value)).to.deep.include(launcher)
			expect(statSync(file!).mode & 0o777).to.equal(0o600)
		}
	})

	it('comments, commas, order and indent stay; only the entry is new', async () => {
		const place = make()
		for (const name of ['zed', 'vscode']) {
			const file = put(entry(place, name).file!, commented)
			const text = await run(place, { editors: [name], write: true }, [true])
			const after = readFileSync(file, 'utf8')
			for (const line of ['// my settings', '// dark', '/* agents */', '"Other": { "command": "other" }', '// keep'])
				expect(after, name).to.include(line)
			expect(after, name).to.match(/\n\t\t"Garuda": \{/)
			expect(text).to.match(/^\+\t\t"Garuda": \{/m)
			const removed = text.split('\n').filter((line) => /^-[^-]/.test(line))
			expect(removed.length, removed.join('\n')).to.be.at.most(2)
		}
	})

	it('again: the entry stands already, and the file is not touched', async () => {
		const place = make()
		const file = put(entry(place, 'zed').file!, commented)
		await run(place, { editors: ['zed'], write: true }, [true])
		const before = [readFileSync(file, 'utf8'), statSync(file).mtimeMs, statSync(file).ino]
		expect(await run(place, { editors: ['zed'], write: true }, [])).to.include('already')
		expect([readFileSync(file, 'utf8'), statSync(file).mtimeMs, statSync(file).ino]).to.deep.equal(before)
	})

	it('an entry of before keeps its environment and further fields', async () => {
		const place = make()
		const file = put(
			entry(place, 'zed').file!,
			'{"agent_servers": {"Garuda": {"command": "/old", "args": ["acp"], "env": {"A": "1"}, "default_mode": "plan"}}}',
		)
		await run(place, { editors: ['zed'], write: true }, [true])
		expect(JSON.parse(readFileSync(file, 'utf8')).agent_servers.Garuda).to.deep.equal({
			command: 'garuda',
			args: ['acp'],
			env: { A: '1' },
			default_mode: 'plan',
			type: 'custom',
		})
	})

	it('a no writes nothing; without a terminal it takes --yes', async () => {
		const place = make()
		const file = put(entry(place, 'zed').file!, commented)
		expect(await run(place, { editors: ['zed'], write: true }, [false])).to.include('Nothing was changed')
		let thrown: any
		await run(place, { editors: ['zed'], write: true }, null).catch((error) => {
			thrown = error
		})
		expect(thrown.message).to.include('no terminal')
		expect(readFileSync(file, 'utf8')).to.equal(commented)
		await run(place, { editors: ['zed'], write: true, yes: true }, null)
		expect(readFileSync(file, 'utf8')).to.include('Garuda')
	})

	it('--write alone means the editors that are found here', async () => {
		const place = make()
		put(entry(place, 'jetbrains').file!, '{}')
		mkdirSync(join(place.home, '.emacs.d'))
		const text = await run(place, { write: true }, [true])
		expect(text).to.include('JetBrains').and.include('agent-shell').and.not.include('Zed')
		expect(existsSync(entry(place, 'zed').folder)).to.equal(false)
		let thrown: any
		await run(make(), { write: true }, []).catch((error) => {
			thrown = error
		})
		expect(thrown.message).to.include('No editor was found')
	})

	it('a link (dotfiles) stays a link, and its target gets the text and keeps its mode', async () => {
		const place = make()
		const { file } = entry(place, 'zed')
		const real = put(join(place.home, 'dotfiles', 'zed.json'), commented)
		chmodSync(real, 0o640)
		mkdirSync(dirname(file!), { recursive: true })
		symlinkSync(real, file!)
		expect(await run(place, { editors: ['zed'], write: true }, [true])).to.include('dotfiles/zed.json')
		expect(lstatSync(file!).isSymbolicLink()).to.equal(true)
		expect(readFileSync(real, 'utf8')).to.include('Garuda')
		expect(statSync(real).mode & 0o777).to.equal(0o640)
	})

	for (const [name, text] of [
		['broken JSON', '{"a": [}'],
		['a list', '[]'],
		['agent_servers that is no object', '{"agent_servers": "x"}'],
		['two values', '{} {}'],
	])
		it(`${name}: told with the file, which stays as it is`, async () => {
			const place = make()
			const file = put(entry(place, 'zed').file!, text!)
			let thrown: any
			await run(place, { editors: ['zed'], write: true }, [true]).catch((error) => {
				thrown = error
			})
			expect(thrown?.name).to.equal('UserError')
			expect(thrown.message).to.include('settings.json').and.include('nothing was written')
			expect(readFileSync(file, 'utf8')).to.equal(text)
		})

	it("a folder or a dangling link in the file's place is refused", async () => {
		const place = make()
		const { file } = entry(place, 'zed')
		mkdirSync(file!, { recursive: true })
		const dangling = make()
		const other = entry(dangling, 'zed').file!
		mkdirSync(dirname(other), { recursive: true })
		symlinkSync(join(dangling.home, 'nowhere'), other)
		for (const where of [place, dangling]) {
			let thrown: any
			await run(where, { editors: ['zed'], write: true }, [true]).catch((error) => {
				thrown = error
			})
			expect(thrown?.name).to.equal('UserError')
		}
		expect(lstatSync(other).isSymbolicLink()).to.equal(true)
	})

	it('what changed while the person read is not overwritten', async () => {
		const place = make()
		const file = put(entry(place, 'zed').file!, commented)
		const ask = person([])
		ask.confirm = async () => {
			writeFileSync(file, '{"new": true}')
			return true
		}
		let thrown: any
		await setupEditors(place, launcher, { editors: ['zed'], write: true }, ask, () => {}).catch((error) => {
			thrown = error
		})
		expect(thrown.message).to.include('changed meanwhile')
		expect(readFileSync(file, 'utf8')).to.equal('{"new": true}')
	})

	it('CRLF line ends and a byte order mark stay', async () => {
		const zed = entry(make(), 'zed')
		const text = await withEntry('\ufeff{\r\n    "a": 1\r\n}\r\n', zed, 'x')
		expect(text.startsWith('\ufeff{\r\n    "a": 1,\r\n    "agent_servers"')).to.equal(true)
		expect(text.replaceAll('\r\n', '')).to.not.include('\n')
	})

	it('the text around the entry stays byte for byte, in every shape of object', async () => {
		const zed = entry(make(), 'zed')
		const shapes = [
			'{}',
			'{ // nothing yet\n}',
			'{"a":{"x":1,   "y":[1,2]}} // end',
			'{\n  "a": 1 /* one */ // two\n  // three\n}',
			'{\n  "a": 1, // {"b": 2,}\n}',
			'{"agent_servers":{}}',
			'{\n\t"agent_servers": {\n\t\t// none\n\t}\n}',
			'{"agent_servers": {"A": {"command": "a, b"},},}',
		]
		for (const shape of shapes) {
			const after = await withEntry(shape, zed, 'x')
			const { parse } = await import('../../../src/engine/setup/jsonc.ts')
			const errors: unknown[] = []
			const value = parse(after, errors as never, { allowTrailingComma: true })
			expect(errors, after).to.deep.equal([])
			expect(value.agent_servers.Garuda, after).to.deep.equal(zed.value)
			delete value.agent_servers.Garuda
			const before = parse(shape, [], { allowTrailingComma: true })
			expect({ ...value, agent_servers: value.agent_servers }).to.deep.equal({
				...before,
				agent_servers: before.agent_servers ?? {},
			})
			// Whatever stood there stands there still, in order.
			let at = 0
			for (const char of shape.replace(/\s/g, '')) {
				at = after.indexOf(char, at) + 1
				expect(at, `${char} of ${shape} in ${after}`).to.be.above(0)
			}
			expect(await withEntry(after, zed, 'x')).to.equal(after)
		}
	})

	it('a command with spaces and quotes is written as one word in every language', () => {
		const place = make()
		for (const one of editorEntries(place, { command: '/a b/"c"', args: ['acp'] })) {
			const text = one.code?.text ?? JSON.stringify(one.value)
			expect(text, one.name).to.include('"/a b/\\"c\\""')
		}
	})

	it('the places of macOS and of XDG_CONFIG_HOME', () => {
		const file = (name: string, platform: string, env = {}) =>
			editorEntries({ home: '/h', env, platform }, launcher).find((one) => one.name === name)!.file
		expect(file('vscode', 'darwin')).to.equal('/h/Library/Application Support/Code/User/settings.json')
		expect(file('zed', 'darwin', { XDG_CONFIG_HOME: '/x' })).to.equal('/h/.config/zed/settings.json')
		expect(file('zed', 'linux', { XDG_CONFIG_HOME: '/x' })).to.equal('/x/zed/settings.json')
		expect(file('zed', 'linux', { XDG_CONFIG_HOME: 'relative' })).to.equal('/h/.config/zed/settings.json')
	})

	it('an editor that is not known is named with those that are', async () => {
		let thrown: any
		await run(make(), { editors: ['vim'] }).catch((error) => {
			thrown = error
		})
		expect(`${thrown.message} ${thrown.hint}`).to.match(/"vim".*zed, vscode, jetbrains, neovim, emacs/)
	})

	it('states for the doctor: no entry, an entry, a file that cannot be read', async () => {
		const place = make()
		put(entry(place, 'zed').file!, commented)
		put(entry(place, 'jetbrains').file!, '{"agent_servers": {"Garuda": {"command": "/opt/x"}}}')
		mkdirSync(entry(place, 'vscode').file!, { recursive: true })
		const states = Object.fromEntries((await editorStates(place, launcher)).map((one) => [one.entry.name, one]))
		expect([states.zed!.here, states.zed!.command]).to.deep.equal([true, null])
		expect(states.jetbrains!.command).to.equal('/opt/x')
		expect(states.vscode!.problem).to.include('no regular file')
		expect(states.neovim!.here).to.equal(false)
	})
})
