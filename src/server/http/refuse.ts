import type { AccessError } from '../../failures.ts';
import type { Refusal } from '../../refusal/refusal.ts';
import type { SettingNames } from '../settings/setting-names.ts';
import { type Answer, answerRefusal } from './answer.ts';
import { type Exchange, noteRefusal } from './exchange.ts';

/** Refuses a request before any route or rule is looked for, and notes why. */
export type Refuse = (exchange: Exchange, error: AccessError) => Answer;

/** Creates it; `describe` says what the client gets. */
export function createRefuse(
  names: SettingNames,
  describe: (error: AccessError, exchange: Exchange) => Refusal,
): Refuse {
  return (exchange, error) => {
    noteRefusal(exchange, error, names);
    return answerRefusal(describe(error, exchange));
  };
}
