import { type Failure, failures } from '../core/failures.ts';
import type { ExplainedCheck } from './explained-check.ts';
import type { Explanation } from './explanation.ts';
import type { ResponseInput } from './input/input.ts';
import { findReasons } from './input/response.ts';
import { formatInstant } from './shown-time.ts';
import { wrap } from './terminal-text.ts';

const idCommand = (id: string): string => `portcullis explain --id ${/^[\w.:-]{1,128}$/.test(id) ? id : 'ID'}`;

/** Explains a response without its request, by its status, challenge and body. One reason is a refusal; several are undecided. */
export function explainResponse(response: ResponseInput, now: number): Explanation {
  const reasons = findReasons(response);
  const [only] = reasons.length === 1 ? reasons : [];
  const checks = reasons.map((reason): ExplainedCheck => {
    const { fix }: Failure = failures[reason];
    const verdict = only === undefined ? 'unknown' : 'fail';
    return { id: 'response', group: reason, verdict, reason, fix, docs: `refusals.md#${reason}` };
  });
  return {
    version: 1,
    verdict: only === undefined ? 'undecided' : 'refused',
    ...(only !== undefined && { reason: only, status: response.status ?? failures[only].status }),
    at: formatInstant(Math.floor(now)),
    against: { issuer: [], audiences: [], keys: 'none' },
    checks,
  };
}

/** More reasons than this are only named. */
const maxFixes = 12;

/** Formats how to find the reason, then the reasons. */
export function formatResponse({ checks }: Explanation, { id = 'ID', status, error }: ResponseInput): string {
  const seen = [status, error].filter((each) => each !== undefined && each !== null).join(' ');
  const [first] = checks;
  const list =
    checks.length > maxFixes
      ? [wrap(`  ${checks.map(({ group }) => group).join(', ')}`, 2)]
      : checks.map(({ group, fix = '' }) => wrap(`  ${group.padEnd(26)} ${fix}`, 29));
  const headline =
    first === undefined
      ? `undecided: only the service knows the reason${seen === '' ? '' : ` of ${seen}`}`
      : `undecided: ${seen} has one of ${checks.length} reasons, such as ${first.reason}`;
  const ways = [
    `${idCommand(id)}             queries a running dev`,
    `${idCommand(id)} --file LOG  searches the log`,
    'or open the console, or pipe in the request: curl -v prints it.',
  ];
  return [
    wrap(headline, 2),
    'To get the one reason, use the X-Request-Id of the response:',
    ...ways.map((way) => `  ${way}`),
    ...(list.length > 0 ? ['The reasons:', ...list] : []),
  ]
    .join('\n')
    .concat('\n');
}
