// Learns a server's habits from what it refuses, so that the next request is taken. Each lesson is learned once.
import type { ModelFailure } from '../types.ts'
import type { ProviderQuirks } from './provider.ts'

const refuses =
	'(unknown|unrecogni[sz]ed|unsupported|unexpected|extra|invalid|not (supported|permitted|allowed)|forbidden|does not support|no such)'
const refused = (field: string, text: string): boolean =>
	new RegExp(`${refuses}.{0,120}\\b${field}|\\b${field}\\b.{0,120}${refuses}`, 'i').test(text)

/** Changes `quirks` and tells whether the same request is worth sending again at once. */
export function learnOpenai(quirks: ProviderQuirks, failure: ModelFailure, sent: number): boolean {
	if (!teaches(failure)) return false
	const text = failure.message
	const set = <K extends keyof ProviderQuirks>(key: K, value: ProviderQuirks[K]): boolean => {
		if (quirks[key] === value) return false
		quirks[key] = value
		return true
	}
	if (
		/max_completion_tokens/.test(text) &&
		quirks.maxTokens === 'max_tokens' &&
		(/use .{0,3}max_completion_tokens/i.test(text) || refused('max_tokens', text))
	)
		return set('maxTokens', 'max_completion_tokens')
	if (quirks.maxTokens === 'max_completion_tokens' && refused('max_completion_tokens', text))
		return set('maxTokens', 'max_tokens')
	if (/reasoning_content/.test(text)) {
		if (
			/must|missing|required|pass(ed)? back|expected|need/i.test(text) &&
			!/(must not|not (supported|permitted|allowed)|unknown|unexpected|extra)/i.test(text)
		)
			return set('reasoning', 'reasoning_content')
		if (quirks.reasoning !== 'never') return set('reasoning', 'never')
	}
	if (quirks.reasoning !== 'never' && refused('reasoning(_details)?', text) && !/reasoning_effort/.test(text))
		return set('reasoning', 'never')
	if (quirks.systemRole === 'developer' && /developer|only .{0,40}(user|assistant|system).{0,60}role|role/i.test(text))
		return set('systemRole', 'system')
	if (refused('stream_options', text) || refused('include_usage', text)) return set('streamUsage', false)
	if (/reasoning_effort|\beffort\b|\breasoning\b/.test(text) && quirks.effort !== 'none') return set('effort', 'none')
	if (refused('prompt_cache_key', text)) return set('cacheKey', false)
	if (refused('cache_control', text)) return set('cacheMarks', false)
	if (/unexpected role .{0,3}user.{0,20}after role .{0,3}tool/i.test(text)) return set('wordAfterTools', true)
	if (/tool.?call.?id.{0,120}(length of 9|9 characters)/i.test(text)) return set('shortIds', true)
	if (
		/content.{0,60}(null|none|missing|required|must be a (valid )?string|should be a valid string|cannot be (empty|blank))|(null|missing|empty) content/i.test(
			text,
		)
	) {
		const next = quirks.emptyContent === 'empty' ? 'null' : quirks.emptyContent === 'null' ? 'omit' : undefined
		if (next) return set('emptyContent', next)
	}
	return learnMax(quirks, text, sent)
}

/** The same for Anthropic's form. */
export function learnAnthropic(quirks: ProviderQuirks, failure: ModelFailure, sent: number): boolean {
	if (!teaches(failure) || failure.thinkingBinding) return false
	const text = failure.message
	if (!quirks.noThinking && (refused('adaptive', text) || refused('thinking(\\.\\w+)*', text))) {
		quirks.noThinking = true
		return true
	}
	if (quirks.effort !== 'none' && (refused('output_config', text) || refused('effort', text))) {
		quirks.effort = 'none'
		return true
	}
	return learnMax(quirks, text, sent)
}

const teaches = (failure: ModelFailure): boolean =>
	!failure.streamed &&
	(failure.code === 'invalid_request' || failure.code === 'overflow' || failure.code === 'internal') &&
	(failure.status === undefined || failure.status < 501)

/** "at most N output tokens", or a window that prompt and output share: the output limit that fits. */
const learnMax = (quirks: ProviderQuirks, text: string, sent: number): boolean => {
	const number = (match: RegExpExecArray | null) => (match ? Number(match[1]!.replaceAll(',', '')) : undefined)
	let fits: number | undefined
	const sum = /(\d[\d,]*) \+ (\d[\d,]*) > (\d[\d,]*)/.exec(text)
	const shared =
		/maximum context length is (\d[\d,]*).{0,80}?(?:your request has|you requested|requested).{0,60}?(\d[\d,]*) (?:input|in the messages|prompt)/i.exec(
			text,
		)
	if (sum) fits = Number(sum[3]!.replaceAll(',', '')) - Number(sum[1]!.replaceAll(',', '')) - 16
	else if (shared && /max_(completion_)?tokens/.test(text))
		fits = Number(shared[1]!.replaceAll(',', '')) - Number(shared[2]!.replaceAll(',', '')) - 16
	else if (/max_(completion_|output_)?tokens|output tokens/i.test(text))
		fits =
			number(
				/(?:at most|maximum (?:of|is|value is|allowed)?|less than or equal to|<=|cannot exceed|up to|max is)\D{0,12}(\d[\d,]*)/i.exec(
					text,
				),
			) ?? number(/>\s*(\d[\d,]*)/.exec(text))
	if (!fits || fits < 512 || fits >= sent) return false
	quirks.maxOutput = fits
	return true
}
