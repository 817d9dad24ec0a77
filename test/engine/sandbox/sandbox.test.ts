// The sandbox against the corpus: nothing gets out in four settings, and everything acts without it.
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { asNobody, readableCopy } from './copy.ts'
import { probes } from './probes.ts'
import { attackScripts, type Report, runSuite } from './suite.ts'

const cases = new URL('../../cases/attacks.json', import.meta.url).pathname
const attacks = attackScripts(cases)
const isRoot = process.getuid?.() === 0

const through = (rows: Report['inside']) => rows.filter(({ escaped }) => escaped).map(({ id }) => id)

describe('sandbox: the corpus', function () {
	this.timeout(120_000)
	const acts = new Set<string>()

	before(() => {
		// No silent skip: without bubblewrap this suite fails.
		execFileSync('/usr/bin/bwrap', ['--version'])
	})

	it('has 51 attack scripts and at least 60 named probes, each name once', () => {
		expect(attacks).to.have.length(51)
		expect(new Set(probes.map(({ id }) => id)).size).to.equal(probes.length)
		expect(probes.filter(({ id }) => !id.startsWith('mask .')).length).to.be.at.least(60)
	})

	for (const setting of ['build', 'plan', 'root = home'] as const)
		it(`lets nothing out in ${setting}`, async () => {
			const report = await runSuite(
				setting,
				attacks,
				({ id }) => setting === 'build' || (setting === 'plan' && !acts.has(id)),
			)
			for (const id of through(report.outside)) acts.add(id)
			expect(through(report.inside)).to.deep.equal([])
			expect(report.inside.length).to.be.at.least(attacks.length + 100)
		})

	it('lets nothing out as an ordinary user', function () {
		if (!isRoot) {
			console.log('      not root: the settings above ran as an ordinary user already')
			this.skip()
		}
		const copy = readableCopy()
		try {
			const ran = asNobody(copy, ['suite', join(copy, 'test/cases/attacks.json')])
			expect(ran.status, ran.stderr).to.equal(0)
			const report: Report = JSON.parse(ran.stdout)
			for (const id of through(report.outside)) acts.add(id)
			expect(through(report.inside)).to.deep.equal([])
			const owed = probes
				.filter(({ live, in: only }) => live === 'any' && (!only || only.includes('user')))
				.map(({ id }) => id)
			const dead = owed.filter((id) => !through(report.outside).includes(id))
			expect(dead, 'said to act for anybody, but dead').to.deep.equal([])
		} finally {
			rmSync(copy, { recursive: true, force: true })
		}
	})

	it('has no dead case: each acts without the sandbox in at least one setting', () => {
		const owed = [...attacks, ...probes.filter(({ live }) => live === 'any' || isRoot)].map(({ id }) => id)
		expect(owed.filter((id) => !acts.has(id))).to.deep.equal([])
	})
})
