import { readRequestPath } from './request-path.ts';
import { anySegment, type RulePattern } from './rule-matcher.ts';

type PathPattern = Pick<RulePattern, 'segments' | 'hasRest'>;

/** The path of a rule as a pattern; a text that says what to write if it is none. */
export function readRulePath(path: string): PathPattern | string {
  const parts = path.split('/').slice(1);
  // One slash at the end makes no difference.
  if (parts.at(-1) === '') parts.pop();
  const hasRest = parts.at(-1) === '**';
  if (hasRest) parts.pop();
  if (parts.includes('**')) return '** stands at the end only. Write * for one segment in the middle.';
  if (parts.some((part) => part.includes('*') && part !== '*')) {
    return 'A * stands for one whole segment. Write it between slashes, or write %2A for the character itself.';
  }
  const segments: (string | typeof anySegment)[] = [];
  for (const part of parts) {
    const read = part === '*' ? anySegment : readRequestPath(`/${part}`)?.segments[0];
    if (read === undefined) {
      return 'The gate refuses requests with such a path, so this rule would never match. Write it without . and .. segments, //, ;, \\ and escapes of those.';
    }
    segments.push(read);
  }
  return { segments, hasRest };
}
