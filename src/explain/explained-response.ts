import { failures, type Reason } from '../core/failures.ts';
import type { ExplainedCheck } from './explained-check.ts';
import { type Explanation, nothing } from './explanation.ts';
import type { ResponseInput } from './input/input.ts';
import { findReasons } from './input/response.ts';
import { formatInstant } from './shown-time.ts';
import { wrap } from './terminal-text.ts';

const idCommand = (id = ''): string => `portcullis explain --id ${/^[\w.:-]{1,128}$/.test(id) ? id : 'ID'}`;

/** Reports whether a response has more than a status, which every proxy can send. */
const isWorded = ({ description, error }: ResponseInput): boolean => (description ?? error ?? undefined) !== undefined;

/** Explains a response without its request, by its status, challenge and body. One reason is a refusal; several are undecided. */
export function explainResponse(response: ResponseInput, now: number): Explanation {
  const { foreign, status, id } = response;
  const reasons = foreign === undefined ? findReasons(response) : [];
  const [only] = reasons.length === 1 && isWorded(response) ? reasons : [];
  const verdict = only === undefined ? 'unknown' : 'fail';
  const checks = reasons.map((reason): ExplainedCheck => ({ ...checkOf(reason), verdict }));
  return {
    version: 1,
    verdict: only === undefined ? 'undecided' : 'refused',
    ...(only !== undefined && { reason: only, status: status ?? failures[only].status }),
    at: formatInstant(Math.floor(now)),
    against: nothing,
    ...(only === undefined && { next: foreign?.fix ?? idCommand(id) }),
    checks: foreign === undefined ? checks : [describeSaid(response)],
  };
}

const checkOf = (reason: Reason) =>
  ({ id: 'response', group: 'response', reason, fix: failures[reason].fix, docs: `refusals.md#${reason}` }) as const;

/** The response of an input as a check that decides nothing: what it says, or which reasons it may have. */
function describeSaid(response: ResponseInput): ExplainedCheck {
  const { foreign, status, id } = response;
  const common = { id: 'response', group: 'response', verdict: 'unknown' } as const;
  if (foreign !== undefined) {
    const { by, meaning, reason, fix } = foreign;
    return { ...common, ...(reason !== undefined && { reason }), why: `${by}: ${meaning}`, fix };
  }
  const [reason, ...others] = findReasons(response);
  const of = status === undefined ? '' : ` (status ${status})`;
  if (reason === undefined || (others.length === 0 && !isWorded(response)))
    return { ...common, why: `status ${status}, not worded like a refusal of this service` };
  if (others.length > 0) return { ...common, why: `one of ${others.length + 1} reasons${of}: ${idCommand(id)}` };
  return { ...common, ...checkOf(reason), why: `${reason}${of}` };
}

/**
 * Adds the response that the input also has. It is of another time, and perhaps of other settings: an admission that it
 * contradicts is undecided.
 */
export function addResponse(explanation: Explanation, response: ResponseInput | undefined): Explanation {
  if (response?.status === undefined || response.status < 400) return explanation;
  const said = describeSaid(response);
  // A service that names a fault of the token had one: the export lacks the header.
  const isExported = explanation.reason === 'missing_credentials' && said.reason !== undefined;
  if (isExported && said.reason !== explanation.reason)
    return explainResponse(response, Date.parse(explanation.at) / 1000);
  if (explanation.reason !== undefined) return explanation;
  const isOwn = response.description !== undefined && findReasons(response).length > 0;
  const isContradicted = explanation.verdict === 'admitted' && isOwn;
  const next = isContradicted ? ({ verdict: 'undecided', next: idCommand(response.id) } as const) : {};
  return { ...explanation, ...next, checks: [...explanation.checks, said] };
}

/** More reasons than this are only named. */
const maxFixes = 12;

/** Formats how to find the reason, then the reasons. */
export function formatResponse({ checks, next }: Explanation, { id, status, error, foreign }: ResponseInput): string {
  if (foreign !== undefined)
    return `${wrap(`undecided: ${foreign.by}: ${foreign.meaning}`, 2)}\n${wrap(`next: ${next}`, 6)}\n`;
  const seen = [status, error].filter((each) => each !== undefined && each !== null).join(' ');
  const [first] = checks;
  const list =
    checks.length > maxFixes
      ? [wrap(`  ${checks.map(({ reason }) => reason).join(', ')}`, 2)]
      : checks.map(({ reason = '', fix = '' }) => wrap(`  ${reason.padEnd(26)} ${fix}`, 29));
  const some =
    checks.length === 1
      ? `${seen} may be ${first?.reason}, or the response of a proxy`
      : `${seen} has one of ${checks.length} reasons, such as ${first?.reason}`;
  const none = `only the service knows the reason${seen === '' ? '' : ` of ${seen}`}`;
  return [
    wrap(`undecided: ${first === undefined ? none : some}`, 2),
    'To get the one reason, use the X-Request-Id of the response:',
    `  ${idCommand(id)}             queries a running dev`,
    `  ${idCommand(id)} --file LOG  searches the log`,
    '  or open the console, or pipe in the request: curl -v prints it.',
    ...(list.length > 0 ? ['The reasons:', ...list] : []),
    `next: ${next}\n`,
  ].join('\n');
}
