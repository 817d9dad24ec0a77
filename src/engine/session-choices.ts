// What a user may change while a session is open: mode, model, effort, sandbox profile, accept-edits. Used by live-session.ts.
import type { Profile } from './api.ts'
import { UserError } from './errors.ts'
import { noImages } from './pictures.ts'
import type { AuditLog, Clock, ToolState } from './ports.ts'
import type { ModelChoice, SessionParts } from './session-parts.ts'
import type { Recorder } from './session-record.ts'
import type { AgentEvent, Effort, Mode } from './types.ts'

export interface ChoicesDeps
	extends Pick<SessionParts, 'model' | 'effort' | 'mode' | 'acceptEdits' | 'chooseModel' | 'profile' | 'tighten'> {
	limits: Pick<SessionParts['limits'], 'cost'>
	state: Pick<ToolState, 'noImages'>
	audit: AuditLog
	clock: Clock
	record: Recorder
	emit(event: AgentEvent): void
	/** UserError while a turn runs. */
	free(hint: string): void
	/** The model or the effort is another one. */
	changed(): void
}

export class Choices {
	private readonly d: ChoicesDeps
	model: ModelChoice
	effort: Effort | undefined
	mode: Mode
	acceptEdits: boolean

	constructor(deps: ChoicesDeps) {
		this.d = deps
		this.model = deps.model
		deps.state.noImages = noImages(deps.model)
		this.effort = deps.effort
		this.mode = deps.mode
		this.acceptEdits = deps.acceptEdits
	}

	async setMode(mode: Mode): Promise<void> {
		const { record, audit, clock, emit } = this.d
		if (mode === this.mode) return
		this.mode = mode
		if (record.begun) await record.write({ type: 'mode', time: clock.now(), mode })
		await audit.append({ kind: 'mode', detail: { mode } }).catch(() => {})
		emit({ type: 'mode', mode })
	}

	/** UserError for a model that is not there, or whose price is unknown where a cost limit must hold. */
	async setModel(name: string): Promise<void> {
		this.d.free('Change the model after it.')
		const choice = await this.d.chooseModel(name)
		if (this.d.limits.cost !== null && choice.spec.price === null)
			throw new UserError(
				`The price of ${choice.name} is unknown, so a cost limit cannot hold.`,
				'Set its price in models.json, or leave the limit out.',
			)
		this.model = choice
		this.d.state.noImages = noImages(choice)
		await this.modelChanged()
	}

	async setEffort(effort: Effort | null): Promise<void> {
		const { efforts } = this.model.spec
		if (effort !== null && !efforts.includes(effort))
			throw new UserError(
				`${this.model.name} has no effort "${effort}".`,
				efforts.length ? `It takes: ${efforts.join(', ')}.` : 'It takes none.',
			)
		this.effort = effort ?? undefined
		await this.modelChanged()
	}

	private async modelChanged(): Promise<void> {
		const { record, clock, emit } = this.d
		this.d.changed()
		const effort = this.effort === undefined ? {} : { effort: this.effort }
		if (record.begun) await record.write({ type: 'model', time: clock.now(), model: this.model.name, ...effort })
		emit({ type: 'model', model: this.model.name, ...effort })
	}

	/** Only tighter. */
	async setProfile(profile: Profile): Promise<void> {
		if (profile === this.d.profile()) return
		if (profile !== 'strict')
			throw new UserError('The sandbox of a session can only be made tighter.', 'Start a new session for another one.')
		this.d.free('Tighten the sandbox after it.')
		await this.d.tighten()
		await this.d.audit.append({ kind: 'mode', detail: { profile } }).catch(() => {})
	}
}
