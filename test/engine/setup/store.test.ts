// The files that setup writes: closed, whole, its own; and what is there stays.
import {
	chmodSync,
	existsSync,
	linkSync,
	lstatSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { readCredentials } from '../../../src/engine/config/credentials.ts'
import { loadModels } from '../../../src/engine/config/models.ts'
import { garudaPaths } from '../../../src/engine/config/paths.ts'
import { type Change, save } from '../../../src/engine/setup/store.ts'
import { removeTemp, tempDir } from '../../helpers/temp.ts'
import { clock } from './fixture.ts'

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
const home = (files: Record<string, string> = {}) => {
	const paths = garudaPaths(tempDir(), '/nowhere')
	if (Object.keys(files).length > 0) mkdirSync(paths.home, { mode: 0o700 })
	for (const [name, text] of Object.entries(files)) writeFileSync(join(paths.home, name), text, { mode: 0o600 })
	return paths
}
const key: Change = { key: { name: 'WORK_API_KEY', value: 'sk-new-0123456789' } }
const choice: Change = {
	...key,
	default: 'work/big',
	provider: { name: 'work', fields: { baseURL: 'https://llm.example.com/v1', key: 'WORK_API_KEY' } },
	model: { provider: 'work', id: 'big', facts: { window: 64_000 } },
}
const refused = async (work: Promise<unknown>): Promise<string> => {
	try {
		await work
	} catch (error) {
		expect((error as Error).name).to.equal('UserError')
		return `${(error as Error).message} ${(error as { hint?: string }).hint}`
	}
	throw new Error('it was written')
}

describe('setup: the files it writes', () => {
	let umask: number
	beforeEach(() => {
		umask = process.umask(0)
	})
	afterEach(() => {
		process.umask(umask)
		removeTemp()
	})

	it('from nothing: the folder 0700, both files 0600 (with an open umask), read back by who reads them, nothing left beside', async () => {
		const paths = home()
		const { written } = await save(paths, choice, clock)
		expect(written).to.deep.equal([paths.credentials, paths.models])
		expect([mode(paths.home), mode(paths.models), mode(paths.credentials)]).to.deep.equal(['700', '600', '600'])
		expect(await readCredentials(paths)).to.deep.equal({ WORK_API_KEY: 'sk-new-0123456789' })
		const models = await loadModels(paths, {})
		expect(models.default).to.equal('work/big')
		expect(models.overrides('work', 'big')).to.deep.equal({ window: 64_000 })
		expect(readdirSync(paths.home).sort()).to.deep.equal(['credentials', 'models.json'])
	})

	it('the same again writes nothing: not one byte, not one time stamp', async () => {
		const paths = home()
		await save(paths, choice, clock)
		const before = [paths.models, paths.credentials].map((path) => [
			readFileSync(path, 'utf8'),
			statSync(path).mtimeMs,
			statSync(path).ino,
		])
		expect((await save(paths, choice, clock)).written).to.deep.equal([])
		expect(
			[paths.models, paths.credentials].map((path) => [
				readFileSync(path, 'utf8'),
				statSync(path).mtimeMs,
				statSync(path).ino,
			]),
		).to.deep.equal(before)
	})

	it('what is there stays: other providers, facts of the person, other keys, order and indent', async () => {
		const paths = home({
			'models.json':
				'{\n\t"$schema": "x",\n\t"providers": {\n\t\t"work": {"baseURL": "https://old.example.com/v1", "headers": {"x-a": "b"}, "models": {"big": {"window": 8000}}},\n\t\t"other": {"baseURL": "https://o.example.com/v1"}\n\t}\n}\n',
			credentials: '{"OTHER":"sk-other"}',
		})
		await save(paths, choice, clock)
		const text = readFileSync(paths.models, 'utf8')
		const value = JSON.parse(text)
		expect(text).to.include('\n\t"providers"')
		expect(Object.keys(value)).to.deep.equal(['$schema', 'providers', 'default'])
		expect(value.providers.work).to.deep.equal({
			baseURL: 'https://llm.example.com/v1',
			headers: { 'x-a': 'b' },
			models: { big: { window: 8000 } },
			key: 'WORK_API_KEY',
		})
		expect(value.providers.other).to.deep.equal({ baseURL: 'https://o.example.com/v1' })
		expect(JSON.parse(readFileSync(paths.credentials, 'utf8'))).to.deep.equal({
			OTHER: 'sk-other',
			WORK_API_KEY: 'sk-new-0123456789',
		})
	})

	for (const [name, files] of [
		['a comment', { 'models.json': '// mine\n{}' }],
		['a comma too many', { 'models.json': '{"providers": {},}' }],
		['a byte order mark', { 'models.json': '\ufeff{}' }],
		['an empty file', { 'models.json': '' }],
		['a wrong type', { 'models.json': '{"providers": []}' }],
		['a field that is not known', { 'models.json': '{"modles": {}}' }],
		['broken credentials', { credentials: '{"A": ' }],
		['a list as credentials', { credentials: '[]' }],
		['a number as a key', { credentials: '{"A": 1}' }],
	] as [string, Record<string, string>][])
		it(`Z06 ${name}: file and line are named, nothing is written`, async () => {
			const paths = home(files)
			const text = await refused(save(paths, choice, clock))
			const [file] = Object.keys(files)
			expect(text)
				.to.match(new RegExp(`${file}:1:\\d+: `))
				.and.not.include('sk-new')
			expect(readFileSync(join(paths.home, file!), 'utf8')).to.equal(files[file!])
			expect(readdirSync(paths.home)).to.deep.equal([file])
		})

	it('Z06 a link in the place of either file is neither followed nor replaced', async () => {
		for (const name of ['credentials', 'models.json']) {
			const paths = home({ 'real.json': '{}' })
			symlinkSync(join(paths.home, 'real.json'), join(paths.home, name))
			expect(await refused(save(paths, choice, clock))).to.include('is a link')
			expect(readlinkSync(join(paths.home, name))).to.equal(join(paths.home, 'real.json'))
			expect(readFileSync(join(paths.home, 'real.json'), 'utf8')).to.equal('{}')
		}
	})

	it('Z06 the folder itself a link, a file, or open to writers: refused', async () => {
		const linked = home()
		symlinkSync(tempDir(), linked.home)
		expect(await refused(save(linked, choice, clock))).to.include('is a link')
		const file = home()
		writeFileSync(file.home, '')
		expect(await refused(save(file, choice, clock))).to.include('is no folder')
		const open = home({ 'settings.json': '{}' })
		chmodSync(open.home, 0o777)
		expect(await refused(save(open, choice, clock))).to.include('chmod 700')
		expect(existsSync(open.credentials)).to.equal(false)
	})

	it('credentials open to others are written anew and closed, with all keys, and it is told', async () => {
		const paths = home({ credentials: '{"OLD":"sk-old"}' })
		chmodSync(paths.credentials, 0o644)
		const { mended } = await save(paths, key, clock)
		expect(mended.join()).to.include('open to others').and.not.include('sk-old')
		expect(mode(paths.credentials)).to.equal('600')
		expect(await readCredentials(paths)).to.deep.equal({ OLD: 'sk-old', WORK_API_KEY: 'sk-new-0123456789' })
	})

	it('a second name of the credentials does not get the new key', async () => {
		const paths = home({ credentials: '{"OLD":"sk-old"}' })
		const other = join(paths.home, 'elsewhere')
		linkSync(paths.credentials, other)
		await save(paths, key, clock)
		expect(readFileSync(other, 'utf8')).to.not.include('sk-new')
		expect(lstatSync(paths.credentials).nlink).to.equal(1)
	})

	it('a folder that others may look into is closed when a key goes into it', async () => {
		const paths = home({ 'settings.json': '{}' })
		chmodSync(paths.home, 0o755)
		await save(paths, { default: 'openai/x' }, clock)
		expect(mode(paths.home)).to.equal('755')
		await save(paths, key, clock)
		expect(mode(paths.home)).to.equal('700')
	})

	it('a key is removed, the others stay; removing it again changes nothing', async () => {
		const paths = home({ credentials: '{"A":"sk-a","B":"sk-b"}' })
		expect((await save(paths, { removeKey: 'A' }, clock)).removed).to.equal(true)
		expect(await readCredentials(paths)).to.deep.equal({ B: 'sk-b' })
		const again = await save(paths, { removeKey: 'A' }, clock)
		expect([again.removed, again.written]).to.deep.equal([false, []])
	})

	it('names of a person are no prototype: "__proto__" and "constructor" as models', async () => {
		const paths = home()
		for (const id of ['constructor', 'toString']) {
			await save(
				paths,
				{
					provider: { name: 'work', fields: { baseURL: 'https://e.example/v1' } },
					model: { provider: 'work', id, facts: { window: 5000 } },
				},
				clock,
			)
			expect((await loadModels(paths, {})).overrides('work', id)).to.deep.equal({ window: 5000 })
		}
		expect(({} as Record<string, unknown>).window).to.equal(undefined)
	})

	it('two at once: one writes, the other says so; both never mix', async () => {
		const paths = home()
		mkdirSync(paths.home, { mode: 0o700 })
		const many = await Promise.allSettled(
			Array.from({ length: 6 }, (_, i) => save(paths, { key: { name: `KEY_${i}`, value: `sk-${i}` } }, clock)),
		)
		const done = many.flatMap((one, i) => (one.status === 'fulfilled' ? [`KEY_${i}`] : []))
		expect(done).to.not.deep.equal([])
		expect(Object.keys(await readCredentials(paths)).sort()).to.deep.equal(done.sort())
		expect(readdirSync(paths.home)).to.deep.equal(['credentials'])
	})
})
