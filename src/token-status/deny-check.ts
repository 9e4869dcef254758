import type { JsonObject } from '../jose/json.ts';
import { Refused } from '../refused.ts';

/** Check that decides if a valid token is denied. */
export interface DenyCheck {
  /**
   * Reports whether a token with these claims, signed by the key of this `kid`, is denied: `true` or `false`, or a promise of
   * it. Called at every request. If it throws, rejects or returns anything else, the request gets 503.
   */
  denies(claims: JsonObject, kid: string | undefined): boolean | Promise<boolean>;
}

type Answer = Refused | undefined;

export type RefuseDenied = (claims: JsonObject, kid: string | undefined) => Answer | Promise<Answer>;

/** Queries a deny list, and admits no request if the query fails. A refusal is returned. */
export function createRefuseDenied(list: DenyCheck): RefuseDenied {
  return (claims, kid) => {
    try {
      const answer: unknown = list.denies(claims, kid);
      return isThenable(answer) ? Promise.resolve(answer).then(readAnswer, unavailable) : readAnswer(answer);
    } catch (cause) {
      return unavailable(cause);
    }
  };
}

/** `undefined`, of a function without a return value, must not admit a token; nor must 0 and 1 be guessed. */
function readAnswer(answer: unknown): Answer {
  if (answer === false) return undefined;
  if (answer === true) return new Refused('revoked_token');
  return unavailable(new TypeError('denyList: denies(claims, kid) must answer true or false, or a promise of it'));
}

function unavailable(cause: unknown): Refused {
  return new Refused('deny_list_unavailable', { cause });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
