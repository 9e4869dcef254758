import { AccessError } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** What says of a valid token whether it is denied. */
export interface DenyCheck {
  /**
   * Whether a token with these claims, signed by the key of this `kid`, is denied: `true` or `false`, or a promise of it.
   * Asked at every request. If it throws, rejects or answers anything else, the request gets 503.
   */
  denies(claims: JsonObject, kid: string | undefined): MaybePromise<boolean>;
}

type Answer = AccessError | undefined;

/** The refusal of a token that is denied; `undefined` for one that is not. At once if the list answers at once. */
export type RefuseDenied = (claims: JsonObject, kid: string | undefined) => MaybePromise<Answer>;

/** Asks a deny list, and lets nobody in if it does not answer. A refusal is returned. */
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

/** `undefined`, of a function that forgot to answer, must not let a token in; nor 0 and 1 be taken for what they may mean. */
function readAnswer(answer: unknown): Answer {
  if (answer === false) return undefined;
  if (answer === true) return new AccessError('revoked_token');
  return unavailable(new TypeError('denyList: denies(claims, kid) must answer true or false, or a promise of it'));
}

function unavailable(cause: unknown): AccessError {
  return new AccessError('deny_list_unavailable', { cause });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
