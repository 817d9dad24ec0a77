// Two hundred commands as people and models type them, in projects that need no network. Run by ordinary-run.ts.

export interface Group {
	name: string
	/** Programs it needs; without them it is left out, loudly. */
	needs: string[]
	/** Makes the project, on the host, in an empty folder. */
	setup: string
	/** In this order; each is to succeed. */
	commands: string[]
	/** Those that write `.git/config`, which stays read-only: they ask, and are named beforehand. */
	exceptions?: string[]
}

const file = (path: string, ...lines: string[]) =>
	`mkdir -p "$(dirname ${path})"; cat > ${path} <<'END'\n${lines.join('\n')}\nEND`

export const groups: Group[] = [
	{
		name: 'git',
		needs: ['git'],
		setup: `
git init -q -b main . && mkdir src docs
printf 'one\\ntwo\\nthree\\n' > src/a.txt; echo hello > README.md; echo '*.log' > .gitignore; echo x > docs/d.md
git add -A && git commit -qm first
git init -q --bare -b main ../project-git-origin.git && mv ../project-git-origin.git origin.git && echo origin.git >> .gitignore
git remote add origin ./origin.git && git push -q -u origin main
git commit -qam ignore; echo four >> src/a.txt; git commit -qam second; git tag v0.1`,
		commands: [
			'git status',
			'git status --short --branch',
			'git log --oneline -5',
			'git log --stat -2',
			'git log --graph --all --format="%h %an %s"',
			'git diff',
			'git diff HEAD~1 --stat',
			'git show HEAD',
			'git show HEAD:README.md',
			'git blame src/a.txt',
			'git branch',
			'git branch -a -vv',
			'git remote -v',
			'git config --list',
			'git config --get user.name',
			'git rev-parse HEAD',
			'git rev-parse --show-toplevel',
			'git ls-files',
			'git grep -n two',
			'git describe --tags',
			'git shortlog -sn HEAD',
			'git switch -c feature',
			'echo five >> src/a.txt && git add src/a.txt && git commit -m "add five"',
			'git commit --amend --no-edit',
			'git checkout main',
			'git checkout -b topic',
			'echo new > src/new.txt && git add -A && git commit -m "new file"',
			'git switch main',
			'git merge feature',
			'git merge --no-ff topic -m "merge topic"',
			'git cherry-pick --no-commit feature || git cherry-pick --quit',
			'git reset --hard HEAD',
			'git revert --no-edit HEAD~1 -m 1 || git revert --no-edit feature',
			'echo change >> README.md && git stash',
			'git stash list',
			'git stash show -p',
			'git stash pop',
			'git restore README.md',
			'echo y >> README.md && git add README.md && git restore --staged README.md',
			'git checkout -- README.md',
			'git rm docs/d.md && git commit -m "remove d"',
			'git mv src/new.txt src/newer.txt && git commit -m "rename"',
			'git tag -a v0.2 -m "version 0.2"',
			'git tag --list',
			'git tag -d v0.1',
			'git branch old HEAD~1',
			'git branch -D old',
			'git rebase -q HEAD~1',
			'GIT_SEQUENCE_EDITOR=true git rebase -i HEAD~1',
			'git reset --soft HEAD~1 && git commit -m "again"',
			'git reflog -5',
			'touch junk.tmp && git clean -fd',
			'git fsck --no-progress',
			'git gc --quiet',
			'git count-objects -v',
			'git archive --format=tar HEAD -o out.tar && rm out.tar',
			'git format-patch -1 -o patches && git apply --check --reverse patches/*.patch; rm -r patches',
			'git fetch',
			'git fetch --all --prune --tags',
			'git pull --ff-only',
			'git push',
			'git push --tags',
			'git push -u origin topic',
			'git clone ./origin.git copied && rm -rf copied',
			'git worktree add tree topic && git worktree remove tree',
			'git push origin HEAD:refs/heads/side',
			'git ls-remote origin',
			'git worktree list',
			'git bisect start HEAD HEAD~2 && git bisect reset',
			'git notes add -m "a note" HEAD',
			'git cat-file -p HEAD',
			'git check-ignore a.log',
			'git diff --no-index README.md src/a.txt || true',
			'git merge-base main topic',
			'git rev-list --count HEAD',
			'git update-index --refresh',
			'git symbolic-ref HEAD',
			'git whatchanged -1 || true',
			'git stash push -m empty; git stash clear',
		],
		exceptions: [
			'git config user.email me@example.org',
			'git remote add second ./origin.git',
			'git branch -m topic renamed',
		],
	},
	{
		name: 'npm',
		needs: ['node', 'npm'],
		setup: `
${file('package.json', '{"name":"ordinary","version":"1.0.0","type":"module","scripts":{"build":"node build.js","test":"node --test","lint":"node --check index.js","start":"node index.js","prepare":"node -e 0"},"bin":{"ordinary":"index.js"}}')}
${file('index.js', '#!/usr/bin/env node', 'export const add = (a, b) => a + b', 'console.log(add(1, 2))')}
${file('build.js', "import { mkdirSync, copyFileSync } from 'node:fs'", "mkdirSync('dist', { recursive: true })", "copyFileSync('index.js', 'dist/index.js')")}
${file('test/add.test.js', "import test from 'node:test'", "import assert from 'node:assert'", "import { add } from '../index.js'", "test('adds', () => assert.equal(add(1, 2), 3))")}
${file('packages/lib/package.json', '{"name":"lib-ordinary","version":"1.2.3","main":"main.js","bin":{"lib-tool":"main.js"},"scripts":{"postinstall":"node -e 0"}}')}
${file('packages/lib/main.js', '#!/usr/bin/env node', "console.log('lib')")}
${file('packages/other/package.json', '{"name":"other-ordinary","version":"0.1.0","main":"main.js"}')}
${file('packages/other/main.js', 'module.exports = 1')}
${file('registry.mjs', "import { createServer } from 'node:http'", "import { readFileSync } from 'node:fs'", 'const tar = readFileSync(process.argv[2])', "const server = createServer((request, response) => request.url.endsWith('.tgz') ? response.end(tar) : response.end(JSON.stringify({ name: 'other-ordinary', 'dist-tags': { latest: '0.1.0' }, versions: { '0.1.0': { name: 'other-ordinary', version: '0.1.0', dist: { tarball: 'http://127.0.0.1:4873/other.tgz' } } } })))", "server.listen(4873, '127.0.0.1')")}
git init -q -b main . && printf 'node_modules\\ndist\\n*.tgz\\n' > .gitignore && git add -A && git commit -qm first`,
		commands: [
			'node --version',
			'npm --version',
			'npm install',
			'npm install --no-audit --no-fund ./packages/lib',
			'npm ls',
			'npm ls --all --json',
			'npm ci --offline',
			'npm run',
			'npm run build',
			'npm test',
			'npm run lint --silent',
			'npm start',
			'npx lib-tool',
			'npm exec -- lib-tool',
			'npm pack',
			'npm pack --dry-run --json',
			'npm pkg get version',
			'npm pkg set description="a thing"',
			'npm prefix',
			'npm root',
			'npm config get registry',
			'npm explain lib-ordinary',
			'npm uninstall lib-ordinary',
			'npm install --save-dev file:packages/lib',
			'npm prune',
			'npm dedupe --offline',
			'npm cache verify',
			'git add -A && git commit -qm deps && npm version patch',
			'npm version 2.0.0 --no-git-tag-version',
			'npm query ":root"',
			'npm rebuild',
			'(cd packages/other && npm pack) && node registry.mjs packages/other/*.tgz & sleep 0.7; sleep 0.5; npm install other-ordinary --registry http://127.0.0.1:4873 --no-audit; s=$?; kill %1; exit $s',
			'node -e "console.log(process.version)"',
			'node --test',
			'node --check index.js',
			"node --input-type=module -e \"import fs from 'node:fs'; fs.writeFileSync('o.txt', 'x')\"",
			'mkdir -p fresh && cd fresh && npm init -y',
			'rm -rf node_modules && npm install --prefer-offline --no-audit',
		],
	},
	{
		name: 'pip',
		needs: ['python3', 'pip3'],
		setup: `
${file('setup.py', 'from setuptools import setup', "setup(name='ordinary', version='1.0', packages=['ordinary'], entry_points={'console_scripts': ['ordinary = ordinary:main']})")}
${file('ordinary/__init__.py', 'def main():', "    print('hello')", '', 'def add(a, b):', '    return a + b')}
${file('tests/test_add.py', 'import unittest', 'from ordinary import add', '', 'class AddTest(unittest.TestCase):', '    def test_add(self):', '        self.assertEqual(add(1, 2), 3)')}
touch tests/__init__.py requirements.txt; git init -q -b main . && git add -A && git commit -qm first`,
		commands: [
			'python3 --version',
			'pip3 --version',
			'pip3 list',
			'pip3 freeze',
			'pip3 check || true',
			'python3 -m venv --system-site-packages .venv',
			'.venv/bin/pip install --no-index --no-build-isolation .',
			'.venv/bin/ordinary',
			'.venv/bin/pip show ordinary',
			'.venv/bin/pip uninstall -y ordinary',
			'.venv/bin/pip install --no-index --no-build-isolation -e .',
			'.venv/bin/pip install --no-index -r requirements.txt',
			'. .venv/bin/activate && python -c "import ordinary; ordinary.main()"',
			'pip3 wheel --no-index --no-build-isolation --no-deps -w wheels .',
			'pip3 install --no-index --target vendor wheels/*.whl',
			'pip3 download --no-index --no-deps --find-links wheels -d down ordinary',
			'pip3 cache dir',
			'pip3 config list',
			'python3 -m unittest',
			'python3 -m unittest discover -v tests',
			'python3 -m compileall -q ordinary',
			'python3 -m json.tool <<< "{}"',
			"python3 -c \"import sqlite3; sqlite3.connect('t.db').execute('create table a(b)')\"",
			'python3 -m http.server 8123 --bind 127.0.0.1 & sleep 0.7; python3 -c "import urllib.request as u; print(u.urlopen(\'http://127.0.0.1:8123/setup.py\').status)"; s=$?; kill %1; exit $s',
			'python3 setup.py --version',
			'python3 -c "import multiprocessing as m; p = m.Pool(2); print(p.map(abs, [-1, -2]))"',
		],
	},
	{
		name: 'cargo',
		needs: ['cargo'],
		setup: `
${file('Cargo.toml', '[workspace]', 'members = ["app", "util"]')}
${file('app/Cargo.toml', '[package]', 'name = "app"', 'version = "0.1.0"', 'edition = "2021"', '[dependencies]', 'util = { path = "../util" }')}
${file('app/src/main.rs', 'fn main() {', '    println!("{}", util::add(1, 2));', '}')}
${file('util/Cargo.toml', '[package]', 'name = "util"', 'version = "0.1.0"', 'edition = "2021"')}
${file('util/src/lib.rs', '/// ```', '/// assert_eq!(util::add(1, 2), 3);', '/// ```', 'pub fn add(a: u32, b: u32) -> u32 {', '    a + b', '}', '#[test]', 'fn adds() {', '    assert_eq!(add(1, 2), 3);', '}')}
git init -q -b main . && echo target > .gitignore && git add -A && git commit -qm first`,
		commands: [
			'cargo --version',
			'cargo check',
			'cargo build',
			'cargo run -p app',
			'cargo test',
			'cargo test -p util -- --nocapture',
			'cargo build --release',
			'cargo tree',
			'cargo metadata --format-version 1 --no-deps',
			'cargo generate-lockfile --offline',
			'cargo update --offline',
			'cargo doc --no-deps',
			'cargo new --lib extra && rm -r extra',
			'cargo init --vcs none fresh && rm -r fresh',
			'cargo package -p util --allow-dirty --no-verify --offline',
			'cargo pkgid -p util',
			'cargo locate-project',
			'cargo bench --no-run',
			'cargo install --path app --root inst --offline',
			'cargo clean',
		],
	},
	{
		name: 'go',
		needs: ['go'],
		setup: `
${file('go.mod', 'module example.org/ordinary', '', 'go 1.19')}
${file('main.go', 'package main', '', 'import (', '\t"fmt"', '\t"example.org/ordinary/add"', ')', '', 'func main() { fmt.Println(add.Add(1, 2)) }')}
${file('add/add.go', '// Package add adds.', 'package add', '', '// Add adds.', 'func Add(a, b int) int { return a + b }')}
${file('add/add_test.go', 'package add', '', 'import "testing"', '', 'func TestAdd(t *testing.T) {', '\tif Add(1, 2) != 3 {', '\t\tt.Fatal()', '\t}', '}', '', 'func BenchmarkAdd(b *testing.B) {', '\tfor i := 0; i < b.N; i++ {', '\t\tAdd(i, i)', '\t}', '}')}
git init -q -b main . && git add -A && git commit -qm first`,
		commands: [
			'go version',
			'go env GOPATH GOCACHE',
			'go build ./...',
			'go build -o bin/app .',
			'go run .',
			'go test ./...',
			'go test -v -count=1 ./add',
			'go test -cover -coverprofile=c.out ./... && go tool cover -func=c.out',
			'go test -bench=. -benchtime=10x ./add',
			'go vet ./...',
			'gofmt -l .',
			'go fmt ./...',
			'go list ./...',
			'go list -m',
			'go mod tidy',
			'go mod verify',
			'go mod graph',
			'go doc ./add',
			'mkdir -p gen && cd gen && go mod init example.org/gen',
			'GOBIN=$PWD/bin go install .',
			'go clean -testcache',
		],
	},
	{
		name: 'maven',
		needs: ['mvn', 'java'],
		setup: `
${file('pom.xml', '<project xmlns="http://maven.apache.org/POM/4.0.0">', '<modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>ordinary</artifactId><version>1</version><packaging>pom</packaging>', '</project>')}
${file('A.java', 'public class A { public static void main(String[] a) { System.out.println("hi"); } }')}`,
		commands: [
			'mvn --version',
			'mvn -o validate',
			'mvn -o -q -N validate',
			'mvn -B -o -f pom.xml validate',
			'java -version',
		],
	},
	{
		name: 'make and tools',
		needs: ['make', 'perl'],
		setup: `
${file('Makefile', 'all: out/a.txt', 'out/a.txt: a.in', '\tmkdir -p out && tr a-z A-Z < $< > $@', 'test: all', '\tgrep -q ABC out/a.txt', 'clean:', '\trm -rf out', '.PHONY: all test clean')}
echo abc > a.in; mkdir -p t src; echo 'use Test::More tests => 1; ok(1);' > t/a.t; echo TODO > src/x.c; git init -q -b main . && git add -A && git commit -qm first`,
		commands: [
			'make',
			'make -n',
			'make test',
			'make -j4 clean all',
			'make -C . -B',
			'make clean',
			'prove t',
			'perl -c t/a.t',
			'find . -name "*.in" -newer Makefile -o -name "*.c"',
			'grep -rn TODO src',
			'rg --files || true',
			'sed -i s/abc/abd/ a.in',
			'awk "{ print NR, \\$0 }" a.in',
			'tar czf a.tgz a.in && tar tzf a.tgz',
			'mkdir -p x/y && cp a.in x/y && mv x z && rm -rf z',
			'chmod +x t/a.t && ls -la',
			'mktemp && mktemp -d && echo x > /tmp/scratch.txt && cat /tmp/scratch.txt',
			'ps aux | head -3',
			'df -h . && du -sh .',
			'env | sort | head',
			'date && uname -a && whoami && id',
			'head -c 100 /dev/urandom | sha256sum',
			'xargs -n1 echo < a.in',
			'diff a.in Makefile || true',
			'sleep 0.1 & wait',
			'ln -s a.in link && readlink -f link',
			'touch -d yesterday a.in && stat a.in',
			'patch --version || true',
			'sort -u a.in | uniq -c | wc -l',
			'for f in *; do echo "$f"; done',
		],
	},
]

/** What is not run, and why: said in the table. */
export const leftOut: [command: string, why: string][] = [
	[
		'mvn compile, test, package, install, dependency:tree',
		'their plugins come from Maven Central; not on a machine that has only Debian’s maven',
	],
	['npm install -g, npm link', 'they write where the system’s programs are: to be asked for'],
	['pip install without a venv', 'Debian refuses it (externally managed) with or without a sandbox'],
	['cargo install and go install into the home', 'programs of the home are protected: to be asked for'],
]
