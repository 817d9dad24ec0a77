// The field's prompts, only those that are used: a module of its own so that it loads at the first question. Used by ask.
export { confirm, input, search, select } from '@inquirer/prompts'
