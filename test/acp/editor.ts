// An editor in the test's own process: the SDK's client joined to the server, with the tap between them.
import { join } from 'node:path'
import {
	type AnyMessage,
	type ClientContext,
	type CreateElicitationRequest,
	client,
	type InitializeResponse,
	type RequestPermissionRequest,
	type RequestPermissionResponse,
	type SessionUpdate,
	type Stream,
} from '@agentclientprotocol/sdk'
import { expect } from 'chai'
import { createServer, type ServerOptions } from '../../src/acp/server.ts'
import { createSignIn } from '../../src/acp/sign-in.ts'
import type { EngineOptions } from '../../src/engine/index.ts'
import { type FakeModel, fakeModel, fakeSpec, type Reply } from '../helpers/fakes.ts'
import { tempProject } from '../helpers/temp.ts'
import { type Message, Tap } from './tap.ts'

export type Outcome = string | 'cancelled' | Promise<string>

export interface EditorOptions {
	files?: Record<string, string | Uint8Array>
	place?: { root: string; home: string }
	replies?: Parameters<typeof fakeModel>[0]
	/** Without a scripted model: what the environment and the home have. */
	real?: boolean
	env?: Record<string, string>
	capabilities?: object
	/** The answer to a question: an option's id, or `cancelled`. Default: deny. */
	answer?(params: RequestPermissionRequest, signal: AbortSignal): Outcome
	form?(params: CreateElicitationRequest): object
	buffer?(path: string): string
	engine?: Partial<EngineOptions>
	server?: Partial<ServerOptions>
	/** Not yet initialized. */
	raw?: boolean
	onUpdate?(update: SessionUpdate, sessionId: string): void
}

export interface Editor {
	agent: ClientContext
	tap: Tap
	root: string
	home: string
	model: FakeModel
	initialized: InitializeResponse
	questions: RequestPermissionRequest[]
	/** Updates of a session (or of all), in order. */
	updates(sessionId?: string): SessionUpdate[]
	/** Of one kind. */
	only<K extends SessionUpdate['sessionUpdate']>(
		kind: K,
		sessionId?: string,
	): Extract<SessionUpdate, { sessionUpdate: K }>[]
	/** All text of the agent so far. */
	said(sessionId?: string): string
	/** A new session in the root. */
	session(more?: object): Promise<string>
	prompt(sessionId: string, text: string): Promise<{ stopReason: string }>
	/** The next update that fits. */
	next(fits: (update: SessionUpdate) => boolean): Promise<SessionUpdate>
	/** Closes it and fails on everything that the tap has seen wrong. */
	close(): Promise<void>
}

const opened = new Set<Editor>()

export async function editor(o: EditorOptions = {}): Promise<Editor> {
	const { root, home } = o.place ?? tempProject(o.files ?? { 'a.txt': 'hello\n' })
	const model = fakeModel((o.replies ?? []) as Reply[])
	const env = { PATH: process.env.PATH!, HOME: home, ...o.env }
	const signIn = createSignIn(env, join(home, '.garuda'))
	const server = createServer({
		version: '1.2.3',
		cwd: root,
		signIn,
		obstacle: null,
		terminalSetup: true,
		engine: () => ({
			home,
			env: signIn.env(),
			version: '1.2.3',
			...(o.real ? {} : { ports: { client: model, spec: fakeSpec() } }),
			...o.engine,
		}),
		...o.server,
	})
	const tap = new Tap()
	const all: { update: SessionUpdate; sessionId: string }[] = []
	const waiting: { fits(update: SessionUpdate): boolean; done(update: SessionUpdate): void }[] = []
	const questions: RequestPermissionRequest[] = []

	const toAgent = new TransformStream<AnyMessage, AnyMessage>({
		transform(message, controller) {
			tap.fromClient(message as Message)
			controller.enqueue(message)
		},
	})
	const toClient = new TransformStream<AnyMessage, AnyMessage>({
		transform(message, controller) {
			// As it would be on the wire.
			const plain = JSON.parse(JSON.stringify(message)) as AnyMessage
			tap.fromAgent(plain as Message)
			controller.enqueue(plain)
		},
	})
	const agentSide: Stream = { readable: toAgent.readable, writable: toClient.writable }
	const clientSide: Stream = { readable: toClient.readable, writable: toAgent.writable }
	server.app.connect(agentSide)
	const connection = client({ name: 'test' })
		.onRequest('session/request_permission', async ({ params, signal }): Promise<RequestPermissionResponse> => {
			questions.push(params)
			const optionId = await (o.answer?.(params, signal) ?? 'deny')
			return { outcome: optionId === 'cancelled' ? { outcome: 'cancelled' } : { outcome: 'selected', optionId } }
		})
		.onRequest(
			'elicitation/create',
			({ params }) => (o.form?.(params) ?? { action: 'decline' }) as { action: 'decline' },
		)
		.onRequest('fs/read_text_file', ({ params }) => ({ content: o.buffer?.(params.path) ?? '' }))
		.onNotification('session/update', ({ params: { update, sessionId } }) => {
			all.push({ update, sessionId })
			o.onUpdate?.(update, sessionId)
			for (const one of [...waiting])
				if (one.fits(update)) {
					waiting.splice(waiting.indexOf(one), 1)
					one.done(update)
				}
		})
		.connect(clientSide)
	const { agent } = connection
	const updates = (id?: string) =>
		all.filter((one) => id === undefined || one.sessionId === id).map((one) => one.update)
	const only = <K extends SessionUpdate['sessionUpdate']>(kind: K, id?: string) =>
		updates(id).filter((one): one is Extract<SessionUpdate, { sessionUpdate: K }> => one.sessionUpdate === kind)
	const made: Editor = {
		agent,
		tap,
		root,
		home,
		model,
		questions,
		initialized: undefined as never,
		updates,
		only,
		said: (id) =>
			only('agent_message_chunk', id)
				.map((one) => (one.content.type === 'text' ? one.content.text : ''))
				.join(''),
		session: async (more = {}) =>
			(await agent.request('session/new', { cwd: root, mcpServers: [], ...more })).sessionId,
		prompt: (sessionId, text) => agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }),
		next: (fits) => {
			const found = updates().find(fits)
			return found ? Promise.resolve(found) : new Promise((done) => waiting.push({ fits, done }))
		},
		close: async () => {
			opened.delete(made)
			await server.close()
			connection.close()
			expect(tap.faults).to.deep.equal([])
			expect(tap.openCalls()).to.deep.equal([])
		},
	}
	opened.add(made)
	if (!o.raw)
		made.initialized = await agent.request('initialize', {
			protocolVersion: 1,
			clientCapabilities: o.capabilities ?? {},
		})
	return made
}

/** For `afterEach`: everything that a failed test left open. */
export async function closeEditors(): Promise<void> {
	for (const one of [...opened]) await one.close()
}

/** The error of a request. */
export async function errorOf(promise: Promise<unknown>): Promise<{ code: number; message: string; data: any }> {
	try {
		await promise
	} catch (error) {
		return error as { code: number; message: string; data: unknown }
	}
	throw new Error('it was answered')
}

export const texts = (content: readonly any[] | null | undefined): string =>
	(content ?? []).map((one) => (one.type === 'content' ? one.content.text : '')).join('\n')
