// What binds a host that is on the list of commands: deny and ask rules, and the team policy.
import { expect } from 'chai'
import { hostRule } from '../../../src/engine/permission/decide.ts'
import { ruleSet } from '../../../src/engine/permission/rules.ts'
import { ruleTexts } from './helpers.ts'

describe('hosts on the list of commands', () => {
	const rule = (lists: Parameters<typeof ruleTexts>[0], ...policy: string[][]) =>
		hostRule(ruleSet(ruleTexts(lists), { root: '/r', home: '/h' }).rules, {
			hosts: policy.map((value) => ({ value, file: 'p', line: 1, field: 'network.allow' })) as never,
		})

	it('deny beats ask, by name, suffix and port; allow rules have no say', () => {
		const says = rule({
			deny: ['host(bad.example)', 'host(*.evil.example)', 'host(x.example:80)'],
			ask: ['host(bad.example)', 'host(q.example)'],
			allow: ['host(bad.example)'],
		})
		expect([
			says('bad.example', 443),
			says('BAD.example', 80),
			says('a.evil.example', 443),
			says('x.example', 80),
		]).to.deep.equal(['deny', 'deny', 'deny', 'deny'])
		expect([says('evil.example', 443), says('x.example', 443), says('ok.example', 443)]).to.deep.equal([
			undefined,
			undefined,
			undefined,
		])
		expect(says('q.example', 443)).to.equal('ask')
		expect(rule({ deny: ['host'] })('any.example', 443)).to.equal('deny')
	})

	it('a team policy with a host list refuses what is on none of its lists; each of several must have it', () => {
		expect(rule({}, ['ok.example'])('ok.example', 443)).to.equal(undefined)
		expect(rule({}, ['ok.example'])('new.example', 443)).to.equal('deny')
		expect(rule({}, ['ok.example', 'new.example'], ['ok.example'])('new.example', 443)).to.equal('deny')
		expect(rule({}, [])('ok.example', 443)).to.equal('deny')
	})
})
