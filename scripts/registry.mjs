// The ACP Registry's own checks over this build: node scripts/registry.mjs <path of a checkout of the registry> [node to start it with]
// Its client starts `garuda acp` with an empty home and wants a sign-in in the first line; its builder judges entry and icon.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const [registry, node = process.execPath] = process.argv.slice(2)
if (!registry || !existsSync(join(registry, 'agent.schema.json'))) {
	console.error('usage: node scripts/registry.mjs <checkout of the registry> [node]')
	process.exit(2)
}
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const copy = mkdtempSync(join(tmpdir(), 'garuda-registry-'))
const python = (code, ...args) =>
	spawnSync('python3', ['-c', code, ...args], { cwd: copy, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

try {
	for (const part of ['.github', 'agent.schema.json', 'registry.schema.json'])
		cpSync(join(resolve(registry), part), join(copy, part), { recursive: true })
	mkdirSync(join(copy, 'garuda'))
	for (const file of ['agent.json', 'icon.svg'])
		cpSync(join(root, 'docs', 'registry', file), join(copy, 'garuda', file))

	const auth = python(
		`import sys; sys.path.insert(0, ".github/workflows"); from client import run_auth_check; from pathlib import Path
r = run_auth_check(sys.argv[1:], Path(".")); print("auth check:", "PASS" if r.success else "FAIL", r.error or [m.id for m in r.auth_methods]); sys.exit(not r.success)`,
		node,
		join(root, 'bin', 'run.js'),
		'acp',
	)
	process.stdout.write(auth.stdout)
	const entry = python(
		`import sys, json; sys.path.insert(0, ".github/workflows"); import build_registry as b; from pathlib import Path
errors = b.validate_icon(Path("garuda/icon.svg"))
try:
    import jsonschema
    errors += [e.message for e in jsonschema.Draft7Validator(json.load(open("agent.schema.json"))).iter_errors(json.load(open("garuda/agent.json")))]
except ImportError: print("entry: its schema is not checked (no jsonschema)")
print("entry and icon:", "FAIL" if errors else "PASS", errors or ""); sys.exit(bool(errors))`,
	)
	process.stdout.write(entry.stdout)
	process.exitCode = auth.status === 0 && entry.status === 0 ? 0 : 1
} finally {
	rmSync(copy, { recursive: true, force: true })
}
