/** Length of a leaked part of a secret, in characters. */
const shown = 16;
/** Each run of 16 characters has one whole block of 8: if no output holds a block, none holds a run. */
const block = 8;

/** Lists every sequence of 16 characters of these strings that an output contains. */
export function findLeaks(texts: readonly string[], outputs: readonly string[]): readonly string[] {
  const isHeld = (part: string): boolean => outputs.some((output) => output.includes(part));
  return texts
    .filter((text) => cut(text, { length: block, step: block }).some(isHeld))
    .flatMap((text) => cut(text, { length: shown, step: 1 }).filter(isHeld));
}

function cut(text: string, { length, step }: { readonly length: number; readonly step: number }): readonly string[] {
  const count = Math.max(0, Math.floor((text.length - length) / step) + 1);
  return Array.from({ length: count }, (_, index) => text.slice(index * step, index * step + length));
}
