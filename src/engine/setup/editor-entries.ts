// How each editor is told of `garuda acp`: where its configuration lies and what stands in it. Data of editors.ts and the doctor.
import { join } from 'node:path'

export type EditorName = 'zed' | 'vscode' | 'jetbrains' | 'neovim' | 'emacs'
export const editorNames: readonly EditorName[] = ['zed', 'vscode', 'jetbrains', 'neovim', 'emacs']

/** How Garuda is started by an editor. */
export interface Launcher {
	command: string
	args: string[]
}

export interface EditorEntry {
	name: EditorName
	title: string
	/** What must be there before the entry works. */
	needs: string
	/** A JSON file with comments that the entry is written into; null for editors that are configured in a program of their own. */
	file: string | null
	/** Whether the editor keeps its configuration on this machine: the folder that shows it. */
	folder: string
	/** Where the entry stands in the JSON. */
	path: string[]
	value: Record<string, unknown>
	/** For editors without a JSON file: the code to paste, and where. */
	code?: { language: string; text: string; where: string }
	/** What to do in the editor afterwards. */
	next: string
}

export interface EditorPlace {
	home: string
	env: Record<string, string | undefined>
	platform: string
}

/** The entries for this machine. */
export function editorEntries({ home, env, platform }: EditorPlace, { command, args }: Launcher): EditorEntry[] {
	const config = absolute(env.XDG_CONFIG_HOME) ?? join(home, '.config')
	const mac = platform === 'darwin'
	const zed = mac ? join(home, '.config', 'zed') : join(config, 'zed')
	const code = mac ? join(home, 'Library', 'Application Support', 'Code', 'User') : join(config, 'Code', 'User')
	return [
		{
			name: 'zed',
			title: 'Zed',
			needs: 'Zed with external agents',
			file: join(zed, 'settings.json'),
			folder: zed,
			path: ['agent_servers', 'Garuda'],
			value: { type: 'custom', command, args, env: {} },
			next: 'In the agent panel choose "New Garuda Thread".',
		},
		{
			name: 'vscode',
			title: 'VS Code',
			needs: 'the extension "ACP Client" (formulahendry.acp-client)',
			file: join(code, 'settings.json'),
			folder: code,
			path: ['acp.agents', 'Garuda'],
			value: { command, args },
			next: "Open the ACP Client panel and choose Garuda. Leave its auto-approve off: it would answer Garuda's questions for you.",
		},
		{
			name: 'jetbrains',
			title: 'JetBrains IDEs',
			needs: 'the AI Assistant plugin, 2025.3 or newer',
			file: join(home, '.jetbrains', 'acp.json'),
			folder: join(home, '.jetbrains'),
			path: ['agent_servers', 'Garuda'],
			value: { command, args, env: {} },
			next: 'Open the AI Chat and choose Garuda among the agents.',
		},
		{
			name: 'neovim',
			title: 'Neovim (CodeCompanion)',
			needs: 'the plugin codecompanion.nvim',
			file: null,
			folder: join(config, 'nvim'),
			path: [],
			value: {},
			code: { language: 'lua', text: lua(command, args), where: 'your CodeCompanion setup' },
			next: 'Open the chat with :CodeCompanionChat adapter=garuda.',
		},
		{
			name: 'emacs',
			title: 'Emacs (agent-shell)',
			needs: 'the package agent-shell',
			file: null,
			folder: absolute(env.XDG_CONFIG_HOME) ? join(config, 'emacs') : join(home, '.emacs.d'),
			path: [],
			value: {},
			code: { language: 'elisp', text: elisp(command, args), where: 'your init.el' },
			next: 'M-x agent-shell, then choose Garuda.',
		},
	]
}

const absolute = (path: string | undefined): string | undefined => (path?.startsWith('/') ? path : undefined)

/** A string of Lua, Elisp or JSON: the three agree on what is used here. */
const quoted = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&')}"`

// The adapter that it extends does no sign-in of its own; Garuda says itself when there is no model.
const lua = (command: string, args: string[]): string => `require("codecompanion").setup({
  adapters = {
    acp = {
      garuda = function()
        return require("codecompanion.adapters").extend("opencode", {
          name = "garuda",
          formatted_name = "Garuda",
          commands = { default = { ${[command, ...args].map(quoted).join(', ')} } },
        })
      end,
    },
  },
})
`

const elisp = (command: string, args: string[]): string => `(with-eval-after-load 'agent-shell
  (add-to-list 'agent-shell-agent-configs
               (agent-shell-make-agent-config
                :identifier 'garuda
                :mode-line-name "Garuda"
                :buffer-name "Garuda"
                :shell-prompt "Garuda> "
                :shell-prompt-regexp "Garuda> "
                :client-maker (lambda (buffer)
                                (agent-shell--make-acp-client
                                 :command ${quoted(command)}
                                 :command-params '(${args.map(quoted).join(' ')})
                                 :context-buffer buffer)))))
`
