// What the benches share: a scripted model server on loopback that keeps times, processes of the product and of the floor, tables.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
	chmodSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	realpathSync,
	rmSync,
	writeFileSync,
} from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Answer, anthropicStream, openaiStream } from '../test/helpers/sse-server.ts'

export type Wire = 'openai' | 'anthropic'
export const wires: Wire[] = ['openai', 'anthropic']

export const here: string = dirname(fileURLToPath(import.meta.url))
export const bin: string = process.env.GARUDA_BENCH_BIN ?? join(here, '..', 'bin', 'run.js')
if (!existsSync(join(dirname(bin), '..', 'dist', 'oclif.js'))) throw new Error('npm run build first')

// ---------------------------------------------------------------- arguments

const words = process.argv.slice(2)
export const strict: boolean = words.includes('--strict')
/** The first number of the command line, else the default. */
export const rounds = (usual: number): number => Number(words.find((word) => /^\d+$/.test(word)) ?? usual)

// ---------------------------------------------------------------- server

export interface Exchange {
	/** When the request was there, whole; and when the last byte of the answer was handed over. */
	arrived: number
	answered: number
	bytes: number
	body: any
}

export interface ModelServer {
	url: string
	exchanges: Exchange[]
	/** Answers of the next process, one a request; the last one for all after it. */
	play(answers: Answer[]): void
	close(): Promise<void>
}

/** Both wires on one port; an answer's bytes are made before it is asked for. */
export async function modelServer(): Promise<ModelServer> {
	let made: Record<Wire, Buffer[][]> = { openai: [], anthropic: [] }
	let next = 0
	const exchanges: Exchange[] = []
	const server = http.createServer((request, response) => {
		const parts: Buffer[] = []
		request.on('data', (part: Buffer) => parts.push(part))
		request.on('end', async () => {
			const arrived = performance.now()
			const text = Buffer.concat(parts)
			const wire: Wire = request.url!.includes('/messages') ? 'anthropic' : 'openai'
			const chunks = made[wire][Math.min(next++, made[wire].length - 1)]!
			response.writeHead(200, { 'content-type': 'text/event-stream' })
			for (const chunk of chunks)
				if (!response.write(chunk)) await new Promise<void>((done) => response.once('drain', () => done()))
			const exchange: Exchange = { arrived, answered: 0, bytes: text.length, body: null }
			response.end(() => {
				exchange.answered = performance.now()
			})
			exchange.answered = performance.now()
			exchange.body = text
			exchanges.push(exchange)
		})
	})
	server.keepAliveTimeout = 60_000
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		exchanges,
		play(answers) {
			const join = (parts: string[]): Buffer[] => {
				// As a network delivers them: several events a packet, about 1,400 bytes.
				const out: Buffer[] = []
				let packet = ''
				for (const part of parts) {
					packet += part
					if (packet.length > 1400) {
						out.push(Buffer.from(packet))
						packet = ''
					}
				}
				if (packet) out.push(Buffer.from(packet))
				return out
			}
			made = {
				openai: answers.map((one) => join(openaiStream(one))),
				anthropic: answers.map((one) => join(anthropicStream(one))),
			}
			next = 0
		},
		close: () =>
			new Promise((done) => {
				server.closeAllConnections()
				server.close(() => done())
			}),
	}
}

// ---------------------------------------------------------------- processes

export interface Place {
	root: string
	home: string
	remove(): void
}

/** A small project in a repository, and a home whose credentials file holds a key for both providers. */
export function place(files: Record<string, string> = {}): Place {
	const base = realpathSync(mkdtempSync(join(tmpdir(), 'garuda-bench-')))
	const root = join(base, 'project')
	const home = join(base, 'home')
	mkdirSync(root)
	mkdirSync(join(home, '.garuda'), { recursive: true })
	chmodSync(join(home, '.garuda'), 0o700)
	writeFileSync(
		join(home, '.garuda/credentials'),
		JSON.stringify({ OPENAI_API_KEY: 'sk-bench', ANTHROPIC_API_KEY: 'sk-ant-bench' }),
		{ mode: 0o600 },
	)
	for (const [name, text] of Object.entries({
		'README.md': '# A project\n',
		'package.json': '{"name":"x"}\n',
		...files,
	}))
		writeFileSync(join(root, name), text)
	execFileSync('git', ['init', '-q', root])
	execFileSync('git', ['-C', root, 'add', '-A'])
	execFileSync('git', ['-C', root, '-c', 'user.name=b', '-c', 'user.email=b@b', 'commit', '-qm', 'start'])
	return { root, home, remove: () => rmSync(base, { recursive: true, force: true }) }
}

export interface Timed {
	started: number
	/** Milliseconds of the whole process, from before its start to its end. */
	wall: number
	code: number | null
	bytes: number
	stderr: string
	/** KiB; only when asked for. */
	peak: number
}

/** Runs Node with arguments to its end; its output is read as fast as it comes and thrown away. */
export function time(args: string[], o: { cwd: string; env: Record<string, string>; peak?: boolean }): Promise<Timed> {
	const peakFile = join(o.cwd, '..', 'peak')
	const preload = o.peak ? ['--require', join(here, 'peak.cjs')] : []
	const started = performance.now()
	const child: ChildProcess = spawn(process.execPath, [...preload, ...args], {
		cwd: o.cwd,
		env: { PATH: process.env.PATH!, LANG: 'C.UTF-8', ...o.env, ...(o.peak ? { GARUDA_BENCH_PEAK: peakFile } : {}) },
		stdio: ['ignore', 'pipe', 'pipe'],
	})
	let bytes = 0
	let stderr = ''
	child.stdout!.on('data', (chunk: Buffer) => {
		bytes += chunk.length
	})
	child.stderr!.on('data', (chunk: Buffer) => {
		stderr += chunk
	})
	let ended = 0
	child.on('exit', () => {
		ended = performance.now()
	})
	return new Promise((done) => {
		child.on('close', (code) => {
			const peak = o.peak ? Number(readFileSync(peakFile, 'utf8')) : 0
			done({ started, wall: ended - started, code, bytes, stderr, peak })
		})
	})
}

/** The product's one-shot in a place, against the server, in one wire. */
export function product(
	at: Place,
	server: ModelServer,
	wire: Wire,
	o: { args?: string[]; env?: Record<string, string>; peak?: boolean } = {},
): Promise<Timed> {
	const model = wire === 'openai' ? 'openai/gpt-test' : 'anthropic/claude-sonnet-5-5'
	return time([bin, '-p', 'hello', '-m', model, ...(o.args ?? [])], {
		cwd: at.root,
		env: { HOME: at.home, ANTHROPIC_BASE_URL: server.url, OPENAI_BASE_URL: `${server.url}/v1`, ...o.env },
		...(o.peak ? { peak: true } : {}),
	})
}

export const floor = (at: Place, server: ModelServer, wire: Wire, count = 0, peak = false): Promise<Timed> =>
	time([join(here, 'floor.mjs'), wire, server.url, String(count)], { cwd: at.root, env: { HOME: at.home }, peak })

export function must(run: Timed): Timed {
	if (run.code !== 0) throw new Error(`a run ended with ${run.code}: ${run.stderr}`)
	return run
}

// ---------------------------------------------------------------- figures

export const median = (list: number[]): number => {
	const sorted = [...list].sort((a, b) => a - b)
	const half = sorted.length >> 1
	return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

export interface Row {
	what: string
	measured: number
	unit: string
	floor?: number
	/** At most: of the ratio to the floor, or of the figure itself. */
	bar?: { ratio: number } | { value: number }
	peers?: string
}

const shown = (value: number): string =>
	value >= 1000 ? Math.round(value).toLocaleString('en') : value >= 100 ? value.toFixed(0) : value.toFixed(1)

/** Prints the table; with --strict a missed bar is exit code 1. */
export function report(title: string, rows: Row[]): void {
	let missed = 0
	const table = [['what', 'measured', 'floor', 'ratio', 'bar', 'peers']]
	for (const row of rows) {
		const ratio = row.floor === undefined ? null : row.measured / row.floor
		const value = row.bar === undefined ? null : 'ratio' in row.bar ? ratio : row.measured
		const limit = row.bar === undefined ? null : 'ratio' in row.bar ? row.bar.ratio : row.bar.value
		const ok = value === null || limit === null || value <= limit
		if (!ok) missed++
		table.push([
			row.what,
			`${shown(row.measured)} ${row.unit}`,
			row.floor === undefined ? '' : `${shown(row.floor)} ${row.unit}`,
			ratio === null ? '' : ratio.toFixed(2),
			row.bar === undefined ? '' : `${ok ? 'ok' : 'MISSED'} <= ${limit}${'ratio' in row.bar ? ' x' : ` ${row.unit}`}`,
			row.peers ?? '',
		])
	}
	const widths = table[0]!.map((_, column) => Math.max(...table.map((line) => line[column]!.length)))
	console.log(`\n${title} (node ${process.version})`)
	for (const line of table)
		console.log(
			line
				.map((cell, i) => cell.padEnd(widths[i]!))
				.join('  ')
				.trimEnd(),
		)
	if (missed > 0) {
		console.log(`${missed} bar(s) missed`)
		if (strict) process.exitCode = 1
	}
}
