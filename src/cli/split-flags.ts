import type { FlagRows } from './commands/command-table.ts';

export interface SplitFlags {
  readonly texts: ReadonlyMap<string, readonly string[]>;
  readonly switches: ReadonlySet<string>;
  readonly rest: readonly string[];
}

/**
 * Separates the flags of a command from the flags of settings. Returns `undefined` if a flag lacks its value, has a value
 * that it does not accept, or is duplicated and accepts one value.
 */
export function splitFlags(args: readonly string[], flags: FlagRows): SplitFlags | undefined {
  const texts = new Map<string, string[]>();
  const switches = new Set<string>();
  const rest: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    const [, name = '', written] = /^--([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (flag === undefined) {
      rest.push(arg);
    } else if (flag.value === undefined) {
      if (written !== undefined) return undefined;
      switches.add(name);
    } else {
      const value = written ?? args[++at];
      const known = texts.get(name) ?? [];
      if (value === undefined || (written === undefined && value.startsWith('--'))) return undefined;
      if (flag.isRepeated === undefined && known.length > 0) return undefined;
      texts.set(name, [...known, value]);
    }
  }
  return { texts, switches, rest };
}
