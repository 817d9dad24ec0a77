// Every name that the file tools refuse or ask about, in the spellings that a disk or a tool takes for it.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import {
	foldName,
	protectedReason,
	secretName,
	sensitiveReason,
	systemReason,
	under,
} from '../../../src/engine/files/sensitive.ts'

const lists = (
	JSON.parse(readFileSync(new URL('../../control/lists.json', import.meta.url), 'utf8')) as {
		files: Record<
			'secretFolders' | 'secretNames' | 'homeSecrets' | 'systemPaths' | 'protectedNames' | 'homeProtected',
			string[]
		>
	}
).files
const home = '/home/me'
const sensitive = (path: string) => sensitiveReason(path, home, [`${home}/root`])

describe('files: names', () => {
	it('every folder and file with secrets is refused', () => {
		for (const name of lists.secretFolders) expect(sensitive(`/srv/${name}/x`), name).to.be.a('string')
		for (const name of lists.secretNames) expect(sensitive(`/srv/${name}`), name).to.be.a('string')
		for (const name of lists.homeSecrets)
			for (const path of [name, `${name}/x`, `${name}/x/y/z`, name.toUpperCase()])
				expect(sensitive(`${home}/${path}`), path).to.be.a('string')
		for (const name of lists.systemPaths) {
			for (const path of [`/${name}`, `/${name}/x`, `/${name.toUpperCase()}`])
				expect(systemReason(path), path).to.be.a('string')
			expect(sensitive(`/${name}`), name).to.equal(systemReason(`/${name}`))
		}
		// What they are called is said: a device is no secret.
		for (const path of ['/proc/1', '/sys', '/dev/sda'])
			expect(systemReason(path), path).to.equal('a device or system path')
		for (const path of ['/etc/shadow', '/var/lib/docker', '/run/secrets/x'])
			expect(systemReason(path), path).to.equal('a system secret')
		for (const path of ['/', '/etc', '/etc/passwd', '/var/lib', '/procx', '/srv/proc', '/run'])
			expect(systemReason(path), path).to.equal(null)
	})

	it('keys and environment files are refused by their names, examples are not', () => {
		for (const name of [
			...['a.pem', 'a.p12', 'a.pfx', 'a.ppk', 'a.jks', 'a.keystore', 'a.kdbx', 'a.key', 'A.PEM'],
			...['id_rsa', 'id_dsa', 'id_ecdsa', 'id_ed25519', 'id_ed25519_sk', 'id_ecdsa_sk', 'ssh_host_rsa_key'],
			...['.env', '.env.local', '.ENV', '.env.production'],
		])
			expect(secretName(name), name).to.be.a('string')
		for (const name of [
			...['.env.example', '.env.sample', '.env.template', '.env.tpl', '.env.dist', '.env.default', '.env.defaults'],
			...['.env.schema', 'env', '.environment', 'a.pem.txt', 'id_rsa.pub', 'keys', 'my.keys', 'ssh_host_key'],
		])
			expect(secretName(name), name).to.equal(null)
	})

	it('a name in another spelling is the same name', () => {
		for (const [name, same] of [
			['.SSH', '.ssh'],
			['.ssh ', '.ssh'],
			['.ssh.', '.ssh'],
			['.ssh::$DATA', '.ssh'],
			['.ss\u200bh', '.ssh'],
			['.\uff53sh', '.ssh'],
			['.\u017fsh', '.ssh'],
			['.v\u0131mrc', '.vimrc'],
			['..', '..'],
			['...', '...'],
			['a:b', 'a'],
		] as const)
			expect(foldName(name), JSON.stringify(name)).to.equal(same)
		for (const path of [
			'/srv/.SSH/x',
			'/srv/.ssh./x',
			'/srv\\.ssh\\x',
			'/srv/.ss\u00adh/x',
			'/srv//./.ssh/x',
			'/srv/.NETRC',
		])
			expect(sensitive(path), path).to.be.a('string')
	})

	it('Garuda’s own folder is refused, but for a root that lies in it', () => {
		const root = `${home}/.garuda/worktrees/a`
		expect(sensitiveReason(`${root}/x`, home, [root])).to.equal(null)
		for (const [path, roots] of [
			[`${root}/x`, []],
			[`${home}/.garuda/worktrees/b/x`, [root]],
			[`${home}/.garuda/trust.json`, [root]],
			[`${home}/.garuda/trust.json`, [home]],
			[`${home}/.garuda/trust.json`, [`${home}/.garuda`]],
			[`${root}/.ssh/x`, [root]],
		] as const)
			expect(sensitiveReason(path, home, roots), path).to.be.a('string')
		// Below another folder than the home the names are ordinary; a home of / has none.
		expect(sensitiveReason('/srv/.kube/config', home, [])).to.equal(null)
		expect(sensitiveReason('/.kube/config', '/', [])).to.equal(null)
		expect(sensitive(`${home}/a/.kube/config`)).to.equal(null)
		expect(sensitive(home)).to.equal(null)
	})

	it('what other programs obey is protected at any depth of a root, and in the home itself', () => {
		const root = `${home}/root`
		for (const name of lists.protectedNames)
			for (const path of [name, `a/${name}/x`, `a/${name.toUpperCase()}`, `a\\${name}\\x`])
				expect(protectedReason(`${root}/${path}`, root, home), path).to.be.a('string')
		for (const name of lists.homeProtected)
			for (const path of [name, `${name}/x`]) {
				expect(protectedReason(`${home}/${path}`, home, home), path).to.be.a('string')
				expect(protectedReason(`${home}/${path}`, '/home', home), path).to.be.a('string')
				// In a project such a name is an ordinary one.
				if (!lists.protectedNames.some((other) => path.startsWith(other)))
					expect(protectedReason(`${root}/${path}`, root, '/home/other'), path).to.equal(null)
			}
		expect(protectedReason(`${home}/.git/config`, root, home)).to.equal(null)
		expect(protectedReason(`${root}/a/x`, root, home)).to.equal(null)
		expect(protectedReason('/home/me2/.git', home, home)).to.equal(null)
		// As long as the home, and not it.
		expect(protectedReason('/srv/abcd/.bashrc', '/srv/abcd', '/srv/home')).to.equal(null)
		expect([
			under('/a/b', '/a'),
			under('/a', '/a'),
			under('/ab', '/a'),
			under('/a', '/'),
			under('/a', '/a/b'),
		]).to.deep.equal([true, true, false, true, false])
	})
})
