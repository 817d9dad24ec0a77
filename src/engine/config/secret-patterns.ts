// What keys look like: one entry a kind, each found by a cheap anchor first. Used by the redactor only.
import {
	entropy,
	jwtHead,
	looksRandom,
	mixed,
	placeholder,
	secretValue,
	strongValue,
	wordValue,
} from './secret-values.ts'

export interface SecretPattern {
	kind: string
	/** Plain texts, one of which is in every match: without them the expression is not run. */
	anchors: string[]
	/** Global. The secret is group 1, or the whole match. */
	find: RegExp
	/** Whether a match is really one; false alarms cost the model its data. */
	check?(secret: string): boolean
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
		anchors: ['k_live_', 'k_test_', 'k_org_', 'whsec_'],
		find: /\b(?:[srp]k_(?:org_)?(?:live|test)_[A-Za-z0-9]{16,}|whsec_[\w/+=-]{24,})/g,
	},
	{
		kind: 'github-token',
		anchors: ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'],
		find: /\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255})/g,
	},
	{
		kind: 'gitlab-token',
		anchors: ['gl', 'GR1348941', '_gitlab_session='],
		find: /\bgl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|imt|agent|oas|ffct|wt)-[\w.-]{20,}|\bGR1348941[\w-]{20,}|(?<=_gitlab_session=)[0-9a-f]{32}/g,
	},
	{ kind: 'bitbucket-token', anchors: ['ATBB', 'ATATT'], find: /\b(?:ATBB[A-Za-z0-9]{28,}|ATATT3[\w=-]{60,})/g },
	{ kind: 'aws-key-id', anchors: ['AKIA', 'ASIA', 'ABIA', 'ACCA'], find: /\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b/g },
	{
		kind: 'aws-secret',
		anchors: ['aws', 'AWS', 'SecretAccessKey', 'secretAccessKey'],
		find: /(?:aws_?secret_?(?:access_?)?key(?:_id)?|secret_?access_?key)["']?(?:\s{0,4}[:=]\s{0,4}|\s{1,2})["']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])/gi,
	},
	{ kind: 'google-key', anchors: ['AIza'], find: /\bAIza[\w-]{35}(?![\w-])/g },
	{ kind: 'google-oauth', anchors: ['ya29.', 'GOCSPX-'], find: /\b(?:ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})/g },
	{
		kind: 'azure-key',
		anchors: ['AccountKey=', 'SharedAccessKey=', 'sig=', 'Q~', 'JQQJ99'],
		find: /(?<![\w.~-])[A-Za-z0-9]{3}\dQ~[\w.~-]{31,34}|\b[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{10,40}|(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,88}={0,2})|(?<=[?&]sig=)([A-Za-z0-9%+/]{40,}(?:=|%3D)?)/g,
	},
	{
		kind: 'slack-token',
		anchors: ['xox', 'xapp-', 'hooks.slack.com'],
		find: /\b(?:xox[a-z]-[\w%-]{10,}|xapp-\d-[\w-]{20,})|(?<=hooks\.slack\.com\/(?:services|workflows|triggers)\/)[\w/]{20,}/g,
	},
	{
		kind: 'npm-token',
		anchors: ['npm_', '_authToken', ':_auth', ':_password'],
		find: /\bnpm_[A-Za-z0-9]{36}\b|(?:_authToken|:_auth|:_password)\s{0,4}=\s{0,4}["']?([^\s$"']{16,})/g,
	},
	{
		kind: 'npm-token',
		anchors: ['_auth', 'npmAuthIdent'],
		find: /(?<![\w.:])_auth\s{0,4}=\s{0,4}["']?([A-Za-z0-9+/]{16,}={0,2})(?![\w(.])|\bnpmAuthIdent["']?\s{0,4}:\s{0,4}["']?([^\s"']{8,})/g,
		check: looksRandom,
	},
	{ kind: 'pypi-token', anchors: ['pypi-AgE'], find: /\bpypi-AgE[\w-]{50,}/g },
	{ kind: 'huggingface-token', anchors: ['hf_', 'api_org_'], find: /\b(?:hf|api_org)_[A-Za-z0-9]{30,}\b/g },
	{ kind: 'groq-key', anchors: ['gsk_'], find: /\bgsk_[A-Za-z0-9]{32,}\b/g },
	{ kind: 'xai-key', anchors: ['xai-'], find: /\bxai-[A-Za-z0-9]{40,}\b/g },
	{
		kind: 'model-key',
		anchors: [
			'nvapi-',
			'csk-',
			'lsv2_',
			'jina_',
			'tgp_v1_',
			'fw_',
			'pcsk_',
			'wandb_v1_',
			'ABSK',
			'sk_',
			'pa-',
			'fc-',
			'BSA',
		],
		find: /\b(?:pcsk_\w{40,}|wandb_v1_\w{40,}|ABSK[A-Za-z0-9+/]{60,}={0,2}|sk_[0-9a-f]{48}\b|pa-[\w-]{43}(?![\w-])|fc-[0-9a-f]{32}\b|BSA[\w-]{28}(?![\w-])|nvapi-[\w-]{40,}|csk-[a-z0-9]{40,}|lsv2_(?:pt|sk)_[0-9a-f_]{32,}|jina_[A-Za-z0-9]{40,}|tgp_v1_[\w-]{30,}|fw_[A-Za-z0-9]{22,})/g,
		check: looksRandom,
	},
	{ kind: 'perplexity-key', anchors: ['pplx-'], find: /\bpplx-[A-Za-z0-9]{32,}\b/g },
	{ kind: 'replicate-key', anchors: ['r8_'], find: /\br8_[A-Za-z0-9]{30,}\b/g },
	{ kind: 'tavily-key', anchors: ['tvly-'], find: /\btvly-[\w-]{20,}/g },
	{ kind: 'sendgrid-key', anchors: ['SG.'], find: /\bSG\.[\w-]{16,32}\.[\w-]{32,64}/g },
	{ kind: 'twilio-key', anchors: ['SK'], find: /\bSK[0-9a-f]{32}\b/g },
	{ kind: 'telegram-token', anchors: [':AA'], find: /(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])/g },
	{
		kind: 'discord-token',
		anchors: ['.'],
		find: /(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w.-])/g,
		check: mixed,
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
			'vercel_blob_rw_',
			'vcp_',
			'rnd_',
			'LTAI',
			'AKID',
			'AQVN',
			'NRII-',
			'NRAL',
			'ddp_',
			'amzn.mws.',
			'v1.0-',
		],
		find: /\b(?:vercel_blob_rw_\w{30,}|vcp_[A-Za-z0-9]{40,}|rnd_[A-Za-z0-9]{28,}|LTAI[A-Za-z0-9]{20}\b|AKID[A-Za-z0-9]{32}\b|AQVN[\w-]{35,}|NRII-[\w-]{32}|[0-9a-f]{36}NRAL\b|ddp_[A-Za-z0-9]{36}\b|amzn\.mws\.[0-9a-f-]{36}|v1\.0-[0-9a-f]{24}-[0-9a-f]{146}|dapi[0-9a-f]{32}(?:-\d)?|gl(?:sa|c)_[\w+/=]{32,}|nfp_[A-Za-z0-9]{36,}|sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}|tskey-[a-z]{1,12}-[A-Za-z0-9-]{16,}|f(?:m2|o1)_[\w+/=-]{40,}|pul-[0-9a-f]{40}|NRAK-[A-Z0-9]{27}|HRKU-[\w-]{36,}|pscale_(?:tkn|pw|oauth)_[\w.-]{32,})/g,
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
	{
		kind: 'service-token',
		anchors: [
			'xsmtpsib-',
			'CFPAT-',
			'CLOJARS_',
			'packagist_',
			'CCIPAT_',
			'bkua_',
			'squ_',
			'sqp_',
			'sqa_',
			'sgp_',
			'FLWSECK-',
			'rzp_live_',
		],
		find: /\b(?:xsmtpsib-[0-9a-f]{64}-\w{16}|CFPAT-[\w-]{43}|CLOJARS_[a-z0-9]{60}|packagist_[a-z]{3}_[0-9a-f]{50,}|CCIPAT_[A-Za-z0-9]{22}_[0-9a-f]{40}|bkua_[0-9a-f]{40}|sq[uap]_[0-9a-f]{40}|sgp_(?:\w{1,20}_)?[0-9a-f]{40}|FLWSECK-[0-9a-f]{32}-X|rzp_live_[A-Za-z0-9]{14})/g,
	},
	{
		kind: 'service-token',
		// With a form so plain that only a value without any order counts.
		anchors: ['re_', 'EAA', 'cio', 'oy2', 'AKCp', 'cmVmdGtu', 'pat', 'sl.', 'A3-', ':APA91'],
		find: /(?<![\w./+-])(?:re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}|EAA(?:A[\w-]{60}|[A-Za-z][A-Za-z0-9]{80,300})|cio[A-Za-z0-9]{32}|oy2[a-z0-9]{43}|AKCp[A-Za-z0-9]{64,80}|cmVmdGtu[A-Za-z0-9]{50,70}|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|sl\.(?:u\.)?[\w-]{100,}|A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,6}){5}|[\w-]{11}:APA91b[\w-]{100,})(?![\w/+=-])/g,
		check: (text) => looksRandom(text) && (mixed(text) || /^(?:oy2|A3-|pat)/.test(text)),
	},
	{
		kind: 'service-token',
		anchors: ['-us', 'access_token$', 'access-', 'sdk-', 'api-', '1/', '|'],
		find: /\b(?:[0-9a-f]{32}-us\d{1,2}\b|access_token\$production\$[a-z0-9]{16}\$[0-9a-f]{32}|(?:access-(?:sandbox|development|production)|sdk|api)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|1\/\d{10,20}:[0-9a-f]{32}\b|\d{15,16}\|[\w-]{27}(?![\w-]))/g,
	},
	{ kind: 'service-token', anchors: ['-'], find: /\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b(?!-)/g },
	{
		kind: 'webhook',
		anchors: ['/webhooks/', 'hooks.zapier.com', 'webhook.office.com', 'api.telegram.org/bot'],
		find: /(?<=discord(?:app)?\.com\/api\/webhooks\/)\d{15,20}\/[\w-]{30,}|(?<=hooks\.zapier\.com\/hooks\/catch\/)[\w/]{8,}|(?<=webhook\.office\.com\/webhookb2\/)[\w@/-]{40,}|(?<=api\.telegram\.org\/bot)\d{6,12}:[\w-]{20,}/g,
	},
	{ kind: 'service-token', anchors: ['secret_'], find: /secret_[A-Za-z0-9]{43}\b/g, check: looksRandom },
	{ kind: 'service-token', anchors: ['key-'], find: /(?<![\w-])key-[0-9a-f]{32}\b/g },
	{ kind: 'digitalocean-token', anchors: ['dop_v1_', 'doo_v1_', 'dor_v1_'], find: /\bdo[opr]_v1_[0-9a-f]{64}\b/g },
	{ kind: 'docker-token', anchors: ['dckr_pat_', 'dckr_oat_'], find: /\bdckr_[po]at_[\w-]{20,}/g },
	{ kind: 'vault-token', anchors: ['hvs.', 'hvb.', 'hvr.'], find: /\bhv[sbr]\.[\w-]{24,}/g },
	{ kind: 'linear-key', anchors: ['lin_api_', 'lin_oauth_'], find: /\blin_(?:api|oauth)_[A-Za-z0-9]{32,}/g },
	{
		kind: 'shopify-token',
		anchors: ['shpat_', 'shpss_', 'shpca_', 'shppa_'],
		find: /\bshp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}\b/g,
	},
	{
		kind: 'age-key',
		anchors: ['AGE-SECRET-KEY-', 'age-secret-key-', 'AGE-PLUGIN-'],
		find: /\b(?:AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{58}|age-secret-key-(?:pq-)?1[0-9a-z]{58}|AGE-PLUGIN-[A-Z0-9]{1,40}-1[0-9A-Z]{20,})/g,
	},
	{
		kind: 'jwt',
		// Its head is JSON, perhaps with a space or a line end after the brace; signed ones have three parts, encrypted ones five.
		anchors: ['eyJ', 'eyA', 'ewo', 'ewk', 'ew0'],
		find: /(?<![\w-])e[wy][\w-]{10,}\.(?:[\w-]{8,}|(?=\.))(?:\.[\w-]{8,}){1,3}/g,
		check: jwtHead,
	},
	{ kind: 'service-token', anchors: ['eyJrIjoi'], find: /\beyJrIjoi[A-Za-z0-9+/]{40,}={0,2}/g },
	{ kind: 'service-token', anchors: ['sk.eyJ'], find: /\bsk\.eyJ[\w-]{20,}\.[\w-]{20,}/g },
	{
		kind: 'private-key',
		anchors: ['PRIVATE KEY'],
		check: (text) => /[A-Za-z0-9+/]{16}/.test(text.replace(/-----[A-Z0-9 ]+-----/g, '')),
		// Up to the end line; a key cut off (clipped output) goes to the end of its base64 lines.
		find: /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----BEGIN )[\s\S]){0,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\n)*[A-Za-z0-9+/=:, -]{16,})+/g,
	},
	{
		kind: 'private-key',
		// Numbered or quoted line by line as readers and diffs do, and cut off.
		anchors: ['PRIVATE KEY-----'],
		find: /(?<=-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY-----\r?\n)(?:[ \t>|+-]{0,8}\d{1,6}[ \t:|→]{1,4}[A-Za-z0-9+/=]{16,}\r?\n?)+/g,
	},
	{
		kind: 'private-key',
		anchors: ['SSH2 ENCRYPTED PRIVATE KEY', 'Private-Lines: ', 'client-key-data', 'LS0tLS1CRUdJTi'],
		find: /(?<=---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----)[^-]{16,20000}|(?<=Private-Lines: \d{1,4}(?:\s|\\r|\\n){1,4})[A-Za-z0-9+/=]{40,}(?:(?:\s|\\r|\\n){1,4}[A-Za-z0-9+/=]{8,})*|(?<=client-key-data["']?\s{0,4}:\s{0,4}["']?)[A-Za-z0-9+/=]{40,}|LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJ|BFQyBQUklW|BEU0EgUFJJ|BPUEVOU1NI|BFTkNSWVBU|BQR1AgUFJJ)[A-Za-z0-9+/=]{40,}/g,
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
		kind: 'url-password',
		anchors: ['://'],
		find: /(?<=https?:\/\/)[A-Za-z0-9_-]{20,255}(?=@[\w[])/g,
		check: (text) => mixed(text) || /^[0-9a-f]{40}$/.test(text),
	},
	{
		kind: 'bearer',
		anchors: ['earer ', 'asic ', 'oken ', 'SSWS ', 'pikey ', 'piKey '],
		find: /\bauthorization["'`]?\s{0,4}[:=,]\s{0,4}[a-z$@]?["'`]?(?:bearer|basic|token|ssws|apikey)\s{1,4}([^\s"'`\\,;]{16,})/gi,
		check: (text) => !placeholder.test(text),
	},
	{
		kind: 'bearer',
		anchors: ['uthorization'],
		find: /\bauthorization["'`]?\s{0,4}[:=]\s{0,4}["'`]?([\w+/=.~-]{20,512})(?![\w(.])/gi,
		check: (text) => strongValue(text) && mixed(text),
	},
	{
		kind: 'cookie',
		anchors: ['sess', 'SESS', 'sid='],
		find: /(?:\b|_)(?:session|session_?id|connect\.sid|sid|PHPSESSID|JSESSIONID)=([\w%.+/-]{20,512})/gi,
		check: (text) => looksRandom(text) && (mixed(text) || /^[0-9a-f]{32,}$/i.test(text)),
	},
	{
		kind: 'value',
		// `HEROKU_API_KEY=<uuid>`, `X-Server-Token: <uuid>`: an id elsewhere, a key here.
		anchors: ['KEY', 'TOKEN', 'SECRET', '-Token', 'api_key', 'apiKey', 'auth_token', 'authToken'],
		find: /(?:API_KEY|TOKEN|SECRET|SECRET_KEY|ACCESS_KEY|-Token|api_?key|apiKey|auth_?token|authToken)["']?\s{0,4}[:=]\s{0,4}["']?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/g,
		check: (text) => entropy(text) >= 3,
	},
	{ kind: 'value', anchors: ['base64:'], find: /\bbase64:([A-Za-z0-9+/]{43}=)/g },
	{
		kind: 'value',
		anchors: ['</'],
		find: /<[\w.:-]{0,40}(?:password|passwd|passphrase|secret|token|api-?key|privatekey)>\s{0,4}([^<>\s]{8,512})\s{0,4}<\//gi,
		check: (text) => secretValue(text),
	},
	{
		kind: 'value',
		anchors: ['machine', 'default'],
		find: /\b(?:machine\s{1,8}\S{1,200}|default)\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(\S{4,512})/g,
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
		find: /(?<!public|cache|primary|foreign|partition|sort|site|publishable|(?:PUBLIC|CACHE|SITE|PUBLISHABLE)_|Public|Cache|WebSocket)(?:[_-][Kk]ey|KEY|(?<=[a-z])Key)["']?\s{0,4}(?::=|=|:)\s{0,4}["']?([\w+/=.~-]{20,}\(?)/g,
		check: strongValue,
	},
	{
		kind: 'value',
		// `apiKey: string = '…'`, `api_key: &str = "…"`, `string ApiKey { get; } = "…"`.
		anchors: ['string', 'String', 'str', '{ get', '{get'],
		find: /(?:secret|password|passphrase|token|(?:api|access|private|secret)_?key)(?:\s{0,2}:\s{0,2}(?:&(?:'static\s)?)?str(?:ing)?|\sstring|\s{0,2}\{[^{}\n]{0,40}\})\s{0,2}=\s{0,2}["'`]([^"'`\n]{8,512})["'`]/gi,
		check: (text) => secretValue(text),
	},
	{
		kind: 'value',
		// `setApiKey("…")`, `define('DB_PASSWORD', '…')`.
		anchors: ['("', "('", ', "', ", '", ',"', ",'"],
		find: /(?:secret|password|passphrase|token|(?:api|access|private|secret)_?key)(?:["'`]\s{0,2},|\()\s{0,2}["'`]([^"'`\n]{8,512})["'`]/gi,
		check: (text) => secretValue(text) && (mixed(text) || strongValue(text)),
	},
	{
		kind: 'value',
		// `name: DB_PASSWORD, value: …` of a container's settings, `<add key="ApiKey" value="…"/>`.
		anchors: ['value', 'default'],
		find: /(?:name|key|variable)["']?\s{0,2}[:= ]\s{0,2}["']?[\w.-]{0,60}(?:secret|password|passphrase|token|(?:api|access|private|secret)_?key)["']?[,{\s]{1,20}["']?(?:value|default)["']?\s{0,2}[:=]\s{0,2}["']?([^\s"'`<>]{8,512})/gi,
		check: (text) => secretValue(text, false),
	},
	{
		kind: 'value',
		anchors: ['ENV ', 'set -', 'setx ', 'configure set '],
		find: /\b(?:ENV|set\s-[a-zA-Z]{1,4}|setx|configure set)\s{1,2}\w{0,60}(?:secret|password|token|key)\s{1,2}["']?([^\s"'`]{8,512})/gi,
		check: wordValue,
	},
	{
		kind: 'value',
		// A line of .pgpass.
		anchors: [':5432:', ':*:'],
		find: /^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:([^\s:]{6,200})$/gm,
		check: wordValue,
	},
	{
		kind: 'value',
		anchors: ['PAT'],
		find: /(?<=[_\s])PAT["']?\s{0,4}[:=]\s{0,4}["']?([A-Za-z0-9]{30,512})\b/g,
		check: looksRandom,
	},
]

/** The end of a name that says its value is a secret. */
export const secretName =
	/(?:secret|passw(?:or)?d|passphrase|passwd|pwd|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|secret[_-]?key(?:[_-]?base)?|account[_-]?key|master[_-]?key|storage[_-]?key|session[_-]?key|client[_-]?secret|credentials?|auth[_-]?key|encryption[_-]?key|signing[_-]?key|license[_-]?key)s?\\{0,3}["']?\s{0,4}(?:=>|:=|=|:)\s{0,4}/gi
