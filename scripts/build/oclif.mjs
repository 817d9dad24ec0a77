// All that Garuda takes of oclif, as one file: the runner for bin/run.js, and what the command classes are made of.
export * as Args from '@oclif/core/args'
export { Command } from '@oclif/core/command'
export { execute } from '@oclif/core/execute'
export { boolean, custom, integer, option, string } from '@oclif/core/flags'
