import { findCauses } from '../../explain/causes/causes.ts';
import type { Explanation } from '../../explain/explanation.ts';
import type { SettingLabels } from '../../explain/facts.ts';
import type { LogLineInput } from '../../explain/input/input.ts';
import { showText, showValue } from '../../explain/shown-text.ts';
import { failures } from '../../failures.ts';
import { readLogFacts } from './log-facts.ts';
import { isReason } from './reason-page.ts';

/** Explains a log line: the token is not in it, so that only its reason and its facts are told. */
export function explainLogLine({ fields }: LogLineInput, labels: SettingLabels): Explanation | undefined {
  const { time, expected, received, status } = fields;
  // A rule that only reports has refused nobody.
  const reason = fields['reason'] ?? fields['would_refuse'];
  if (typeof reason !== 'string' || !isReason(reason)) return undefined;
  const facts = readLogFacts(reason, fields, labels);
  const causes = facts === undefined ? [] : findCauses(reason, facts);
  return {
    version: 1,
    verdict: 'refused',
    reason,
    status: fields['reason'] !== undefined && typeof status === 'number' ? status : failures[reason].status,
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
        ...(causes.length > 0 ? { causes } : { fix: failures[reason].fix }),
        docs: `refusals.md#${reason}`,
      },
    ],
  };
}
