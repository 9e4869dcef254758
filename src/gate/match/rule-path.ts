import { readRequestPath } from './request-path.ts';
import { bindingForm } from './rule-host.ts';
import { anySegment, type RulePattern } from './rule-matcher.ts';

export interface RulePath extends Pick<RulePattern, 'segments' | 'hasRest'> {
  readonly names: ReadonlyMap<string, number>;
}

/** Parses the path of a rule. Returns the fix as a string if it is not valid. */
export function readRulePath(path: string): RulePath | string {
  const parts = path.split('/').slice(1);
  // One trailing slash makes no difference.
  if (parts.at(-1) === '') parts.pop();
  const hasRest = parts.at(-1) === '**';
  if (hasRest) parts.pop();
  if (parts.includes('**')) return '** is allowed at the end only. Use * for one segment in the middle.';
  if (parts.some((part) => part.includes('*') && part !== '*')) {
    return 'A * is one complete segment. Write it between slashes, or write %2A for the character.';
  }
  const segments: (string | typeof anySegment)[] = [];
  const names = new Map<string, number>();
  for (const [index, part] of parts.entries()) {
    const [, name] = bindingForm.exec(part) ?? [];
    if (name !== undefined) {
      if (names.has(name)) return `{${name}} is in the path twice. Give each segment its own name.`;
      names.set(name, index);
      segments.push(anySegment);
      continue;
    }
    if (/[{}]/.test(part)) {
      return 'A {name} is one complete segment of letters, digits and _. Write it between slashes, or write %7B and %7D for the characters.';
    }
    const read = part === '*' ? anySegment : readRequestPath(`/${part}`)?.segments[0];
    if (read === undefined) {
      return 'The gate refuses requests with such a path, so this rule would never match. Write it without . and .. segments, //, ;, \\ and escapes of them.';
    }
    segments.push(read);
  }
  return { segments, hasRest, names };
}
