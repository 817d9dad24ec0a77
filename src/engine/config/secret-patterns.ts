// What keys look like: one entry a kind, each found by a cheap anchor first. Used by the redactor only.

export interface SecretPattern {
	kind: string
	/** Plain texts, one of which is in every match: without them the expression is not run. */
	anchors: string[]
	/** Global. The secret is group 1, or the whole match. */
	find: RegExp
	/** Whether a match is really one; false alarms cost the model its data. */
	check?(secret: string): boolean
}

/** Shannon entropy in bits per character. */
export function entropy(text: string): number {
	const counts = new Map<string, number>()
	for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1)
	let bits = 0
	for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length)
	return bits
}

/** Words that stand where a secret would: examples, templates, references to a variable. */
const placeholder =
	/^(?:x+|\*+|\.+|-+|_+|0+|your[-_ ].*|my[-_](?:secret|password|token|key).*|change[-_]?me.*|placeholder|example.*|dummy.*|test|none|null|undefined|true|false|secret|password|token|redacted.*|.*\.\.\.|<.*>|\$\{?.*|%.*%|\{\{.*|process\.env.*|os\.environ.*|env\(.*|self\..*|this\..*|[a-z]+[A-Z][A-Za-z]*\(.*)$/i

const looksRandom = (text: string): boolean => entropy(text) >= 3 && /\d/.test(text) && /[A-Za-z]/.test(text)

const patchwork = (text: string): boolean => {
	const parts = text.match(/[A-Z]+[a-z]*|[a-z]+/g) ?? []
	return (
		parts.length >= 5 &&
		text.length / parts.length < 3.4 &&
		(text.match(/[a-z]/g)?.length ?? 0) >= 5 &&
		entropy(text) >= 3.5
	)
}

/** Long, mixed and without order: for names that say less than "secret" does. */
const strongValue = (text: string): boolean =>
	text.length >= 20 &&
	text.length <= 512 &&
	/^[\w+/=.~-]+$/.test(text) &&
	/\d/.test(text) &&
	(/^[0-9a-f]{32,}$/i.test(text)
		? entropy(text) >= 3
		: /[A-Z]/.test(text) && /[a-z]/.test(text) && entropy(text) >= 3.8) &&
	!/^(?:sha\d+-|[\w-]+\.[\w-]+\.[\w-]+$|\/)/.test(text)

/** A word of a command line, where nothing is quoted and a name is as likely as a secret. */
const wordValue = (text: string): boolean =>
	text.length >= 6 &&
	!placeholder.test(text) &&
	!/^(?:[$/~.<{-]|\d+$|https?:)/.test(text) &&
	/\d/.test(text) &&
	/[A-Za-z]/.test(text) &&
	entropy(text) >= 2.5

/** A value after a name that says "secret": random enough, and not a path, a hash of a lock file, a UUID or a word. */
export function secretValue(value: string, quoted = true): boolean {
	if (value.length < 8 || value.length > 512 || /^[\d.,_-]+$/.test(value) || placeholder.test(value)) return false
	if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(value)) return false
	// Letters only, but no words: capitals come as often as a name would never have them.
	if (/^[A-Za-z!#%*^]{16,64}$/.test(value) && patchwork(value)) return true
	// Unquoted code: an identifier, perhaps with a digit or two.
	if (!quoted && /^[A-Za-z_$][\w$.?!]*$/.test(value) && (value.match(/\d/g)?.length ?? 0) < 3) return false
	// An expression, or a sentence.
	if (/^!\s*[A-Za-z_$]/.test(value) && !quoted) return false
	if (/^['A-Za-z,.;:!?() -]+$/.test(value) && (value.match(/ /g)?.length ?? 0) >= 2) return false
	if (/^(?:https?:|file:|\.{0,2}\/|~\/|[A-Za-z]:\\|sha\d+[-:])/.test(value)) return false
	if (/^[a-z]+(?:[-_. ][a-z]+)*$/i.test(value)) return quoted && entropy(value) >= 4.2 && value.length >= 24
	if (/^[\w$]+(?:\.[\w$]+)+(?:\(.*)?$/.test(value) && entropy(value) < 4) return false
	if (/[()[\]{}<>;]/.test(value)) return false
	return entropy(value) >= 2.9 && (/\d/.test(value) || /[^\w]/.test(value) || entropy(value) >= 3.8)
}

const jwtHead = (text: string): boolean => {
	try {
		return /"alg"|"typ"|"enc"/.test(Buffer.from(text.split('.')[0]!, 'base64url').toString('latin1'))
	} catch {
		return false
	}
}

export const secretPatterns: readonly SecretPattern[] = [
	{ kind: 'anthropic-key', anchors: ['sk-ant-'], find: /\bsk-ant-[\w-]{16,}/g },
	{ kind: 'openrouter-key', anchors: ['sk-or-'], find: /\bsk-or-[\w-]{16,}/g },
	{
		kind: 'openai-key',
		anchors: ['sk-'],
		find: /(?<![\w-])sk-(?!ant-|or-)(?:proj-|svcacct-|admin-|live-)?[\w-]{20,}/g,
		check: (text) => looksRandom(text.slice(3)) && /[A-Z]|\d{3}/.test(text),
	},
	{
		kind: 'stripe-key',
		anchors: ['k_live_', 'k_test_', 'whsec_'],
		find: /\b(?:[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[\w/+=-]{24,})/g,
	},
	{
		kind: 'github-token',
		anchors: ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'],
		find: /\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255})/g,
	},
	{
		kind: 'gitlab-token',
		anchors: ['glpat-', 'gldt-', 'glrt-', 'glcbt-', 'glptt-'],
		find: /\bgl(?:pat|dt|rt|cbt|ptt)-[\w.-]{20,}/g,
	},
	{ kind: 'bitbucket-token', anchors: ['ATBB', 'ATATT'], find: /\b(?:ATBB[A-Za-z0-9]{28,}|ATATT3[\w=-]{60,})/g },
	{ kind: 'aws-key-id', anchors: ['AKIA', 'ASIA'], find: /\b(?:AKIA|ASIA)[A-Z2-7]{16}\b/g },
	{
		kind: 'aws-secret',
		anchors: ['aws', 'AWS', 'SecretAccessKey', 'secretAccessKey'],
		find: /(?:aws_?secret_?(?:access_?)?key(?:_id)?|secret_?access_?key)["']?\s{0,4}[:=]\s{0,4}["']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])/gi,
	},
	{ kind: 'google-key', anchors: ['AIza'], find: /\bAIza[\w-]{35}(?![\w-])/g },
	{ kind: 'google-oauth', anchors: ['ya29.', 'GOCSPX-'], find: /\b(?:ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})/g },
	{
		kind: 'azure-key',
		anchors: ['AccountKey=', 'SharedAccessKey=', 'sig='],
		find: /(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,88}={0,2})|(?<=[?&]sig=)([A-Za-z0-9%+/]{40,}(?:=|%3D)?)/g,
	},
	{
		kind: 'slack-token',
		anchors: ['xox', 'xapp-', 'hooks.slack.com'],
		find: /\b(?:xox[abeoprs]-[\w-]{10,}|xapp-\d-[\w-]{20,})|(?<=hooks\.slack\.com\/services\/)[\w/]{20,}/g,
	},
	{
		kind: 'npm-token',
		anchors: ['npm_', '_authToken', ':_auth', ':_password'],
		find: /\bnpm_[A-Za-z0-9]{36}\b|(?:_authToken|:_auth|:_password)\s{0,4}=\s{0,4}["']?([^\s$"']{16,})/g,
	},
	{ kind: 'pypi-token', anchors: ['pypi-AgE'], find: /\bpypi-AgE[\w-]{50,}/g },
	{ kind: 'huggingface-token', anchors: ['hf_'], find: /\bhf_[A-Za-z0-9]{30,}\b/g },
	{ kind: 'groq-key', anchors: ['gsk_'], find: /\bgsk_[A-Za-z0-9]{32,}\b/g },
	{ kind: 'xai-key', anchors: ['xai-'], find: /\bxai-[A-Za-z0-9]{40,}\b/g },
	{
		kind: 'model-key',
		anchors: ['nvapi-', 'csk-', 'lsv2_', 'jina_', 'tgp_v1_', 'fw_'],
		find: /\b(?:nvapi-[\w-]{40,}|csk-[a-z0-9]{40,}|lsv2_(?:pt|sk)_[0-9a-f_]{32,}|jina_[A-Za-z0-9]{40,}|tgp_v1_[\w-]{30,}|fw_[A-Za-z0-9]{22,})/g,
		check: looksRandom,
	},
	{ kind: 'perplexity-key', anchors: ['pplx-'], find: /\bpplx-[A-Za-z0-9]{32,}\b/g },
	{ kind: 'replicate-key', anchors: ['r8_'], find: /\br8_[A-Za-z0-9]{30,}\b/g },
	{ kind: 'tavily-key', anchors: ['tvly-'], find: /\btvly-[\w-]{20,}/g },
	{ kind: 'sendgrid-key', anchors: ['SG.'], find: /\bSG\.[\w-]{16,32}\.[\w-]{32,64}/g },
	{ kind: 'twilio-key', anchors: ['SK'], find: /\bSK[0-9a-f]{32}\b/g },
	{ kind: 'telegram-token', anchors: [':AA'], find: /\b\d{8,10}:AA[\w-]{33}(?![\w-])/g },
	{
		kind: 'discord-token',
		anchors: ['.G', '.X', '.Y'],
		find: /\b[MNO][A-Za-z\d_-]{23,27}\.[GXY][\w-]{5}\.[\w-]{27,40}/g,
	},
	{
		kind: 'cloud-token',
		anchors: [
			'dapi',
			'glsa_',
			'glc_',
			'nfp_',
			'sbp_',
			'sb_secret_',
			'tskey-',
			'fm2_',
			'fo1_',
			'pul-',
			'NRAK-',
			'HRKU-',
			'pscale_',
		],
		find: /\b(?:dapi[0-9a-f]{32}(?:-\d)?|gl(?:sa|c)_[\w+/=]{32,}|nfp_[A-Za-z0-9]{36,}|sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}|tskey-[a-z]{1,12}-[A-Za-z0-9-]{16,}|f(?:m2|o1)_[\w+/=-]{40,}|pul-[0-9a-f]{40}|NRAK-[A-Z0-9]{27}|HRKU-[\w-]{36,}|pscale_(?:tkn|pw|oauth)_[\w.-]{32,})/g,
	},
	{
		kind: 'vault-key',
		anchors: ['dp.', 'ops_eyJ', '.atlasv1.'],
		find: /\b(?:dp\.(?:pt|st|sa|ct|scim|audit)\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{40,44}|ops_eyJ[\w+/=-]{80,}|[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70})/g,
	},
	{
		kind: 'service-token',
		anchors: ['ntn_', 'figd_', 'PMAK-', 'sntry', 'sq0', 'rubygems_', 'ATCTT3', 'xkeysib-'],
		find: /\b(?:ntn_[A-Za-z0-9]{40,}|figd_[\w-]{36,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|sntry[su]_[\w+/=-]{60,}|sq0(?:atp|csp|idp)-[\w-]{22,}|rubygems_[0-9a-f]{48}|ATCTT3[\w=-]{60,}|xkeysib-[0-9a-f]{64}-\w{16})/g,
	},
	{ kind: 'service-token', anchors: ['secret_'], find: /secret_[A-Za-z0-9]{43}\b/g, check: looksRandom },
	{ kind: 'service-token', anchors: ['key-'], find: /(?<![\w-])key-[0-9a-f]{32}\b/g },
	{ kind: 'digitalocean-token', anchors: ['dop_v1_', 'doo_v1_'], find: /\bdo[op]_v1_[0-9a-f]{64}\b/g },
	{ kind: 'docker-token', anchors: ['dckr_pat_', 'dckr_oat_'], find: /\bdckr_[po]at_[\w-]{20,}/g },
	{ kind: 'vault-token', anchors: ['hvs.', 'hvb.'], find: /\bhv[sb]\.[\w-]{24,}/g },
	{ kind: 'linear-key', anchors: ['lin_api_', 'lin_oauth_'], find: /\blin_(?:api|oauth)_[A-Za-z0-9]{32,}/g },
	{ kind: 'shopify-token', anchors: ['shpat_', 'shpss_', 'shpca_'], find: /\bshp(?:at|ss|ca)_[0-9a-fA-F]{32}\b/g },
	{ kind: 'age-key', anchors: ['AGE-SECRET-KEY-'], find: /\bAGE-SECRET-KEY-1[0-9A-Z]{58}/g },
	{ kind: 'jwt', anchors: ['eyJ'], find: /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}/g, check: jwtHead },
	{
		kind: 'private-key',
		anchors: ['PRIVATE KEY'],
		check: (text) => /[A-Za-z0-9+/]{16}/.test(text.replace(/-----[A-Z0-9 ]+-----/g, '')),
		// Up to the end line; a key cut off (clipped output) goes to the end of its base64 lines.
		find: /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----BEGIN )[\s\S]){0,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\n)*[A-Za-z0-9+/=:, -]{16,})+/g,
	},
	{
		kind: 'url-password',
		anchors: ['://'],
		// Hosts that exist for examples only are let be.
		find: /(?<=[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@"'`<>]{0,100}:)([^\s/@"'`<>]{3,200})(?=@(?!(?:\w+\.)?example\.(?:com|org|net)\b)[\w[])/gi,
		check: (text) =>
			!/^(?:x+|\*+|password|pass|pwd|secret|token|\$\{.*|\$\(.*|\$[A-Za-z_]\w*|<.*|\{.*|%.*%|\[redacted.*)$/i.test(
				text,
			),
	},
	{
		kind: 'bearer',
		anchors: ['earer ', 'asic ', 'oken '],
		find: /\bauthorization["']?\s{0,4}[:=]\s{0,4}["']?(?:bearer|basic|token)\s{1,4}([^\s"'`\\,;]{16,})/gi,
		check: (text) => !placeholder.test(text),
	},
	{
		kind: 'value',
		anchors: ['</'],
		find: /<[\w.:-]{0,40}(?:password|passwd|passphrase|secret|token|api-?key|privatekey)>\s{0,4}([^<>\s]{8,512})\s{0,4}<\//gi,
		check: (text) => secretValue(text),
	},
	{
		kind: 'value',
		anchors: ['machine'],
		find: /\bmachine\s{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(\S{4,512})/g,
		check: (text) => !placeholder.test(text),
	},
	{
		kind: 'value',
		anchors: ["assword '", "ASSWORD '", "by '", "BY '"],
		find: /\b(?:password|identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by)\s{1,4}'([^'\n]{8,200})'/gi,
		check: (text) => secretValue(text),
	},
	{
		kind: 'value',
		anchors: [' -'],
		find: /\s--?[\w-]{0,30}(?:token|password|passwd|passphrase|secret|api-?key|access-?key)(?:\s{1,2}|=)["']?([^\s"'`]{6,512})/gi,
		check: wordValue,
	},
	{
		kind: 'value',
		anchors: [' -u', ' --user'],
		find: /\s(?:-u|--user)[\s=]["']?[\w.@-]{1,60}:([^\s"'`:]{6,200})/g,
		check: wordValue,
	},
	{
		kind: 'value',
		anchors: ['redis-cli', 'mysql', 'sshpass'],
		find: /\b(?:redis-cli\b[^\n|;&]{0,100}?\s-a\s{1,2}|mysql(?:dump|admin)?\b[^\n|;&]{0,100}?\s-p|sshpass\s{1,2}-p\s{0,2})["']?([^\s"'`-][^\s"'`]{5,200})/g,
		check: wordValue,
	},
	{
		kind: 'value',
		anchors: ['"auth"', "'auth'"],
		find: /["']auth["']\s{0,4}:\s{0,4}["']([A-Za-z0-9+/=_-]{16,512})["']/g,
		check: wordValue,
	},
	{
		kind: 'value',
		anchors: ['KEY', 'Key', '_key', '-key'],
		// `AZURE_STORAGE_KEY=`, `"hostKey": "…"`: many keys are public or no keys, so only a value without any order counts; a call is none.
		find: /(?<!public|cache|primary|foreign|partition|sort|site|publishable|(?:PUBLIC|CACHE|SITE|PUBLISHABLE)_)(?:[_-]key|KEY|(?<=[a-z])Key)["']?\s{0,4}(?::=|=|:)\s{0,4}["']?([\w+/=.~-]{20,}\(?)/g,
		check: strongValue,
	},
]

/** The end of a name that says its value is a secret. */
export const secretName =
	/(?:secret|passw(?:or)?d|passphrase|passwd|pwd|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|secret[_-]?key|account[_-]?key|master[_-]?key|storage[_-]?key|session[_-]?key|client[_-]?secret|credentials?|auth[_-]?key|encryption[_-]?key|signing[_-]?key|license[_-]?key)s?\\{0,3}["']?\s{0,4}(?:=>|:=|=|:)\s{0,4}/gi
