import type { Explanation } from '../../explain/explanation.ts';
import type { LogLineInput } from '../../explain/input/input.ts';
import { showText, showValue } from '../../explain/shown-text.ts';
import { failures } from '../../failures.ts';
import { isReason } from './reason-page.ts';

/** Explains a log line: the token is not in it, so that only its reason and its facts are told. */
export function explainLogLine({ fields }: LogLineInput): Explanation | undefined {
  const { reason, time, expected, received, status } = fields;
  if (typeof reason !== 'string' || !isReason(reason)) return undefined;
  return {
    version: 1,
    verdict: 'refused',
    reason,
    status: typeof status === 'number' ? status : failures[reason].status,
    at: typeof time === 'string' ? showText(time, 40) : '',
    against: { issuer: [], audiences: [], keys: 'none' },
    checks: [
      {
        id: 'log',
        group: 'log line',
        verdict: 'fail',
        reason,
        ...(expected !== undefined && { expected: showValue(expected) }),
        ...(received !== undefined && { seen: showValue(received) }),
        fix: failures[reason].fix,
        docs: `refusals.md#${reason}`,
      },
    ],
  };
}
