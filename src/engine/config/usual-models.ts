// What is used when only a key is there and no model was named anywhere: one place, with its date. Data of model-choice.ts and setup.

/** The day the choices were made (YYYY-MM-DD). */
export const usualDate = '2026-11-30'

/**
 * In order: the first provider with a key wins. OpenAI's is a model that takes tools in Chat Completions as it comes; some newer
 * ones want another interface for that. `at`: only at that address, for another server has other models.
 */
export const usualModels: readonly { provider: string; id: string; at?: string }[] = [
	{ provider: 'anthropic', id: 'claude-sonnet-5-5' },
	{ provider: 'openai', id: 'gpt-5.4', at: 'https://api.openai.com/v1' },
]

export const usualModel = (provider: string): string | undefined =>
	usualModels.find((one) => one.provider === provider)?.id

/** The ways out when there is no model; each is true as it stands. */
export const threeWays = `Three ways to get a model:
  1. garuda setup                      (asks for a provider and a key)
  2. export ANTHROPIC_API_KEY=…        (or OPENAI_API_KEY)
  3. garuda -m ollama/<model>          (a server on this machine: Ollama; or lmstudio/…, llamacpp/…, vllm/…)`
