import { styleText } from 'node:util';
import type { TerminalStyle } from '../explain/terminal-text.ts';

/** Colours only on a terminal without NO_COLOR (no-color.org); ASCII for a dumb terminal. */
export function readTerminalStyle(
  environment: NodeJS.ProcessEnv,
  { isTTY }: { readonly isTTY?: boolean } = process.stdout,
): TerminalStyle {
  const isDumb = environment['TERM'] === 'dumb';
  const isColoured = isTTY === true && !isDumb && !environment['NO_COLOR'];
  return {
    paint: (style, text) =>
      // Decided above: styleText would look at the process and not at this terminal.
      isColoured ? styleText(style === 'good' ? 'green' : ['red', 'bold'], text, { validateStream: false }) : text,
    characters: isDumb ? 'ascii' : 'all',
  };
}
