// Recognises "the prompt does not fit" in what servers say, so that the loop compacts instead of retrying.

// Each server's own words; read from their documentation, sources and issue threads.
const patterns = [
	/prompt is too long/,
	/input is too long/,
	/request_too_large|request too large for model|exceeds the maximum size/,
	/exceeds? (the )?(model'?s? )?(maximum |max )?context( length| window| size| limit)?/,
	/maximum context length/,
	/context[_ ]length[_ ]exceeded/,
	/context[_ ]window[_ ]exceeded|model_context_window_exceeded/,
	/exceeds the available context size/,
	/greater than the context length/,
	/context (size|length|window) (has been )?(exceeded|too small)/,
	/(exceeds?|exceeded|over) (the )?context/,
	/too large for model with \d+ maximum context length/,
	/input token count .{0,80}exceeds the maximum/,
	/exceeds the (input token |token )?limit of \d+/,
	/reduce the length of (the messages|your prompt|the input)/,
	/input length .{0,40}exceed/,
	/prompt contains \d+ tokens/,
	/maximum prompt length is \d+/,
	/prompt tokens? .{0,40}(exceed|too (many|long))/,
	/total number of tokens .{0,60}exceed/,
	/too many (input |prompt )?tokens(?! per)/,
	/tokens? exceed(s|ed)? .{0,40}(n_ctx|context|limit)/,
	/requested tokens .{0,40}exceed context window/,
	/input (is |was )?truncated|the input (prompt )?is too (long|large)/,
	/no user query found in messages/,
	/range of input length should be/,
	/string too long.{0,60}messages|message is too long/,
]

// Limits of speed and money speak of tokens too.
const others = /rate.?limit|per (minute|day|hour|second)|\b(tpm|rpm|tpd)\b|quota|throttl|tool_call|billing/

/** Whether an error says that the prompt is larger than the window, and the window when it is named. */
export function overflowOf(status: number | undefined, text: string): { window?: number } | null {
	const lower = text.slice(0, 4_000).toLowerCase()
	if (status === 429 || status === 401 || status === 403) return null
	const says = patterns.some((pattern) => pattern.test(lower))
	if (!says && status !== 413) return null
	if (others.test(lower) && status !== 413 && !/context|prompt is too long/.test(lower)) return null
	const window = windowIn(lower)
	return window ? { window } : {}
}

const windowIn = (lower: string): number | undefined => {
	const found =
		/(?:maximum context length (?:is|of)|max_model_len\D{0,12}|context (?:length|window|size)(?: of| is|:)?(?: only)?|available context size|n_ctx"?\D{0,4}|maximum prompt length is|limit of|maximum(?: number of tokens)?(?: allowed)?)\D{0,3}\(?(\d[\d,]{2,})/.exec(
			lower,
		) ??
		/>\s*(\d[\d,]{2,})(?: maximum)?/.exec(lower) ??
		/(\d[\d,]{2,}) maximum context length/.exec(lower)
	const value = found && Number(found[1]!.replaceAll(',', ''))
	return value && value >= 256 ? value : undefined
}
