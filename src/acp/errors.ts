// The errors of the protocol that this agent answers with, and how the engine's failures become one. Used by server and session.
import { RequestError } from '@agentclientprotocol/sdk'
import { type Garuda, messageOf, oneLine, type Problem, UserError } from '../engine/index.ts'

export { RequestError }

const text = (message: string, hint?: string): string => (hint ? `${message} ${hint}` : message)

/** -32602: the editor asked for something that cannot be. */
export const invalidParams = (message: string): RequestError => new RequestError(-32602, `Invalid params: ${message}`)

/** -32600: right in itself, wrong now. */
export const notNow = (message: string): RequestError => new RequestError(-32600, `Invalid request: ${message}`)

/** -32000: the editor offers its sign-in. */
export const authRequired = (problem: Pick<Problem, 'message' | 'hint'>): RequestError =>
	RequestError.authRequired(undefined, text(problem.message, problem.hint))

/** -32603 with words for the person; no stack, no data of the project. */
export const plain = (message: string, hint?: string): RequestError => new RequestError(-32603, text(message, hint))

/** A failed turn as the answer to its prompt. */
export const turnError = (problem: Problem): RequestError =>
	problem.code === 'auth'
		? authRequired(problem)
		: new RequestError(-32603, text(problem.message, problem.hint), {
				code: problem.code,
				...(problem.status === undefined ? {} : { status: problem.status }),
				...(problem.requestId === undefined ? {} : { requestId: problem.requestId }),
			})

/** Anything thrown by the engine. A fault of Garuda's own is said as one. */
export const asRequestError = (error: unknown): RequestError =>
	error instanceof RequestError
		? error
		: error instanceof UserError
			? plain(error.message, error.hint)
			: plain(`Garuda failed by a fault of its own: ${oneLine(messageOf(error), 500)}`)

/** Why a session could not be opened: without a model or key the editor is to offer its sign-in. */
export async function openError(garuda: Garuda, error: unknown): Promise<RequestError> {
	if (!(error instanceof UserError)) return asRequestError(error)
	const { problem } = await garuda.readiness().catch(() => ({ problem: null }))
	return problem?.code === 'auth' ? authRequired(problem) : plain(error.message, error.hint)
}
