// Which build tools a project uses, from the names of its files: test commands, caches and a note. Runs nothing.

export interface LanguageProfile {
	name: string
	/** The files of the root that show it. */
	markers: string[]
	/** What runs the tests, as a person would type it; null when the files do not say. */
	testCommand: string | null
	/** Folders that builds write to, absolute, besides the root. Never a folder of settings that later runs read. */
	caches: string[]
	/** One line for the system prompt. */
	note: string
}

export interface ProfileInput {
	/** Names in the root folder. */
	files: readonly string[]
	home: string
	/** A small text file of the root, or null; used for package.json, go.work and the like. Must not throw. */
	read(name: string): Promise<string | null>
}

/** All profiles that fit, in a fixed order. Only file names and a few small files are looked at: no tool of the project runs. */
export async function languageProfiles({ files, home, read }: ProfileInput): Promise<LanguageProfile[]> {
	const names = new Set(files)
	const has = (...wanted: string[]) => wanted.filter((name) => names.has(name))
	const at = (...paths: string[]) => paths.map((path) => `${home}/${path}`)
	const found: LanguageProfile[] = []

	const node = has('package.json')
	if (node.length > 0) {
		const text = await read('package.json')
		const manager = packageManager(names, text)
		const tests = hasScript(text, 'test')
		found.push({
			name: 'Node',
			markers: [
				...node,
				...has('package-lock.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock', 'bun.lockb', 'tsconfig.json'),
			],
			testCommand: tests
				? manager === 'npm'
					? 'npm test'
					: manager === 'bun'
						? 'bun run test'
						: `${manager} test`
				: null,
			caches: at(
				...{
					npm: ['.npm/_cacache', '.npm/_logs'],
					pnpm: ['.local/share/pnpm/store', '.cache/pnpm'],
					yarn: ['.cache/yarn', '.yarn/berry/cache'],
					bun: ['.bun/install/cache'],
				}[manager],
			),
			note: `Node project with ${manager}${tests ? '' : '; package.json has no test script'}. Use ${manager}, so that its lock file stays the only one.`,
		})
	}

	const python = has(
		'pyproject.toml',
		'setup.py',
		'setup.cfg',
		'requirements.txt',
		'Pipfile',
		'tox.ini',
		'uv.lock',
		'poetry.lock',
	)
	if (python.length > 0) {
		const project = (await read('pyproject.toml')) ?? ''
		const runner =
			names.has('uv.lock') || /^\[tool\.uv\b/m.test(project)
				? 'uv run '
				: names.has('poetry.lock') || /^\[tool\.poetry\b/m.test(project)
					? 'poetry run '
					: names.has('Pipfile')
						? 'pipenv run '
						: ''
		const venv = has('.venv', 'venv')[0]
		const command = `${runner}${runner === '' && venv ? `${venv}/bin/` : ''}python -m pytest`
		const pytest =
			/pytest/.test(project) ||
			has('pytest.ini', 'conftest.py', 'tox.ini').length > 0 ||
			/pytest/.test((await read('requirements.txt')) ?? '')
		found.push({
			name: 'Python',
			markers: python,
			testCommand: pytest ? command : command.replace('-m pytest', '-m unittest'),
			caches: at('.cache/pip', '.cache/uv', '.cache/pypoetry', '.cache/pre-commit'),
			note: `Python project${runner ? ` run through "${runner.trim()}"` : venv ? ` with a virtual environment in ${venv}` : ''}. Install nothing outside its environment.`,
		})
	}

	const maven = has('pom.xml')
	if (maven.length > 0) {
		const tool = names.has('mvnw') ? './mvnw' : 'mvn'
		found.push({
			name: 'Maven',
			markers: [...maven, ...has('mvnw')],
			testCommand: `${tool} -o -q test`,
			// Not ~/.m2 itself: settings.xml there is read by later runs outside the sandbox.
			caches: at('.m2/repository'),
			note: `Maven project: run ${tool} with -o (offline) first; one test with -Dtest=Class#method. Leave -o out only when a dependency is missing.`,
		})
	}

	const gradle = has('build.gradle', 'build.gradle.kts', 'settings.gradle', 'settings.gradle.kts')
	if (gradle.length > 0) {
		const tool = names.has('gradlew') ? './gradlew' : 'gradle'
		found.push({
			name: 'Gradle',
			markers: [...gradle, ...has('gradlew')],
			testCommand: `${tool} --offline --no-daemon test`,
			// Not ~/.gradle itself: init scripts and gradle.properties there run later outside the sandbox.
			caches: at('.gradle/caches', '.gradle/wrapper/dists', '.gradle/native', '.gradle/daemon'),
			note: `Gradle project: run ${tool} with --offline --no-daemon; one test with --tests Class.method.`,
		})
	}

	const go = has('go.mod', 'go.work')
	if (go.length > 0) {
		found.push({
			name: 'Go',
			markers: go,
			testCommand: 'go test ./...',
			caches: at('go/pkg/mod', '.cache/go-build', 'Library/Caches/go-build', '.cache/golangci-lint'),
			note: 'Go project: go build ./... and go vet ./... check it; one test with go test ./pkg -run Name. gofmt decides on format.',
		})
	}

	const rust = has('Cargo.toml')
	if (rust.length > 0) {
		found.push({
			name: 'Rust',
			markers: [...rust, ...has('Cargo.lock', 'rust-toolchain', 'rust-toolchain.toml')],
			testCommand: 'cargo test --offline',
			// Not ~/.cargo itself: config.toml and bin there run later outside the sandbox.
			caches: at('.cargo/registry', '.cargo/git'),
			note: 'Rust project: cargo check is the quick test of a change; use --offline while no dependency is missing.',
		})
	}
	return found
}

type Manager = 'npm' | 'pnpm' | 'yarn' | 'bun'

/** By the lock file, then by package.json's own word; npm otherwise. Never by asking the tools: a project can plant them. */
function packageManager(names: ReadonlySet<string>, text: string | null): Manager {
	if (names.has('pnpm-lock.yaml')) return 'pnpm'
	if (names.has('yarn.lock')) return 'yarn'
	if (names.has('bun.lock') || names.has('bun.lockb')) return 'bun'
	if (names.has('package-lock.json')) return 'npm'
	const said = /^(npm|pnpm|yarn|bun)@/.exec(String(field(text, 'packageManager')))?.[1]
	return (said as Manager | undefined) ?? 'npm'
}

function field(text: string | null, name: string): unknown {
	try {
		const value: unknown = JSON.parse(text ?? '')
		return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
	} catch {
		return undefined
	}
}

function hasScript(text: string | null, name: string): boolean {
	const scripts = field(text, 'scripts')
	if (typeof scripts !== 'object' || scripts === null) return false
	const script: unknown = (scripts as Record<string, unknown>)[name]
	return typeof script === 'string' && !script.includes('no test specified')
}
