// What the tour says whatever it met. Used by script.ts and play.ts.
import { notAnAi } from './facts.ts'

export { threeWays } from '../config/usual-models.ts'

/** What it answers to. */
export const menu = `Here it answers to a few words only:
  show me   the whole tour
  tests     find the tests
  todo      search for TODO and FIXME
  edit      one safe change, shown and asked before
  danger    what happens when a command wants secrets or the network
  /diff, /undo, /redo, /status and /help work as with any model.`

/** First in every conversation. */
export const introduction = `This is Garuda's tour: a fixed script, ${notAnAi}.`
