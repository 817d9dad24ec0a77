// Which parts of a project's settings a consent can bring back, and which never count. Data of settings.ts and held.ts.

/** Which consent a held part needs. */
export type HeldKind = 'project-settings' | 'network'

/** All others stay out, whatever is agreed to: who is trusted on the way to the model is never a project's word. */
export const grantable: Record<string, HeldKind> = {
	executor: 'project-settings',
	profile: 'project-settings',
	allow: 'project-settings',
	outside: 'project-settings',
	'sandbox.writePaths': 'project-settings',
	'sandbox.blockUnix': 'project-settings',
	'env.allow': 'project-settings',
	'web.allowLocalhost': 'project-settings',
	'network.allow': 'network',
}
