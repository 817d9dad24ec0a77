// Generated docs: docs/cli.md from the manifest, docs/schemas/*.json from the zod schemas, test/command-snapshot.json.
// Writes them, or with --check fails when what is committed differs.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

const checking = process.argv.includes('--check')
const manifest = JSON.parse(readFileSync('dist/oclif.manifest.json', 'utf8'))
const own = Object.values(manifest.commands)
	.filter((command) => command.pluginName === 'garuda' && !command.hidden)
	.sort((a, b) => (a.id < b.id ? -1 : 1))

const cell = (text) =>
	String(text ?? '')
		.replaceAll('|', '\\|')
		.replaceAll('\n', ' ')

function cli() {
	const lines = [
		'# Command reference',
		'',
		'Generated from the commands themselves by `npm run docs`; do not edit.',
		'',
		'`garuda` alone, and `garuda` with a leading flag, mean `garuda chat …`. `garuda --version` prints the version. `garuda autocomplete` sets up completion for bash, zsh and PowerShell.',
		'',
	]
	for (const command of own) {
		const words = command.id.replaceAll(':', ' ')
		const args = Object.values(command.args ?? {})
			.filter((arg) => !arg.hidden)
			.map((arg) => (arg.required ? `<${arg.name}>` : `[${arg.name}]`))
		lines.push(`## garuda ${[words, ...args].join(' ')}`, '', command.summary ?? '', '')
		if (command.description) lines.push(command.description, '')
		for (const arg of Object.values(command.args ?? {}).filter((arg) => !arg.hidden))
			lines.push(`- \`${arg.name}\`: ${arg.description ?? ''}`)
		const flags = Object.values(command.flags ?? {}).filter((flag) => !flag.hidden)
		if (flags.length > 0) {
			lines.push('', '| flag | what | environment |', '|---|---|---|')
			for (const flag of flags) {
				const value = flag.type === 'option' ? ` <${flag.helpValue ?? flag.options?.join('\\|') ?? 'value'}>` : ''
				const name = `${flag.char ? `-${flag.char}, ` : ''}--${flag.allowNo ? '[no-]' : ''}${flag.name}${value}`
				lines.push(`| \`${name}\` | ${cell(flag.summary ?? flag.description)} | ${flag.env ? `\`${flag.env}\`` : ''} |`)
			}
		}
		if (command.examples?.length) {
			lines.push('', '```sh')
			for (const example of command.examples)
				lines.push(
					String(example.command ?? example)
						.replaceAll('<%= config.bin %>', 'garuda')
						.replaceAll('<%= command.id %>', words),
				)
			lines.push('```')
		}
		lines.push('')
	}
	return `${lines
		.join('\n')
		.replaceAll(/\n{3,}/g, '\n\n')
		.trimEnd()}\n`
}

const snapshot = () =>
	`${JSON.stringify(
		own.map((command) => ({
			command: command.id,
			args: Object.keys(command.args ?? {}),
			flags: Object.values(command.flags ?? {})
				.map((flag) => `${flag.char ? `-${flag.char} ` : ''}--${flag.name}${flag.type === 'option' ? '=' : ''}`)
				.sort(),
		})),
		null,
		2,
	)}\n`

async function schemas() {
	const { schemas } = await import('../dist/engine/index.js')
	if (!schemas) return {}
	return Object.fromEntries(
		Object.entries(await schemas()).map(([name, schema]) => [
			`docs/schemas/${name}.schema.json`,
			`${JSON.stringify(schema, null, 2)}\n`,
		]),
	)
}

const wanted = { 'docs/cli.md': cli(), 'test/command-snapshot.json': snapshot(), ...(await schemas()) }
const stale = []
for (const [file, text] of Object.entries(wanted)) {
	if (existsSync(file) && readFileSync(file, 'utf8') === text) continue
	stale.push(file)
	if (checking) continue
	mkdirSync(dirname(file), { recursive: true })
	writeFileSync(file, text)
}
if (stale.length > 0)
	console.log(`${checking ? 'stale' : 'wrote'}: ${stale.join(', ')}${checking ? ' (npm run docs, look, commit)' : ''}`)
process.exit(checking && stale.length > 0 ? 1 : 0)
