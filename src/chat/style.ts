// Colours for the terminal, or none. The plain chat and the progress of -p use it.
import { styleText } from 'node:util'

export type Paint = (style: 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', text: string) => string

/** Paints whole pieces of already safe text; without colour the text stays as it is. */
export const painter = (color: boolean): Paint =>
	color
		? (style, text) => (text === '' ? '' : styleText(style, text, { validateStream: false }))
		: (_style, text) => text

/** A unified diff with its lines coloured. */
export const paintDiff = (diff: string, paint: Paint): string =>
	diff
		.split('\n')
		.map((line) =>
			line.startsWith('+++') || line.startsWith('---')
				? paint('bold', line)
				: line.startsWith('+')
					? paint('green', line)
					: line.startsWith('-')
						? paint('red', line)
						: line.startsWith('@@')
							? paint('cyan', line)
							: line,
		)
		.join('\n')
