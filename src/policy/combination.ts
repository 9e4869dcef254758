import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Claims } from '../token/claims.ts';
import { checkPolicy } from './checked-policy.ts';
import type { CombinedPolicy, PlainCombinedPolicy, Policy } from './policy.ts';

type Combinable = readonly [Policy<unknown>, ...(readonly Policy<unknown>[])];

/** What a schema somewhere in a policy gives; `unknown` where there is none. */
type Given<P> = P extends { readonly claims: StandardSchemaV1<unknown, infer C> }
  ? C
  : P extends CombinedPolicy<infer C>
    ? Claims extends C
      ? unknown
      : C
    : unknown;

/** What a policy gives where it is the one that holds. */
type GivenAlone<P> = P extends { readonly claims: StandardSchemaV1<unknown, infer C> }
  ? C
  : P extends CombinedPolicy<infer C>
    ? C
    : Claims;

type GivenByAll<P extends readonly unknown[]> = P extends readonly [infer First, ...infer Rest]
  ? Given<First> & GivenByAll<Rest>
  : unknown;

/** Without any schema the server says what the claims are. */
type Combined<C> = unknown extends C
  ? PlainCombinedPolicy
  : [C, Claims] extends [Claims, C]
    ? PlainCombinedPolicy
    : CombinedPolicy<C>;

/**
 * All of these must hold. Where several have a schema, the handler gets the members that each gives; those of a later
 * one win. Throws `TypeError` for a policy that cannot work.
 *
 * @example
 * const policy = allOf({ scopes: ['read:messages'] }, { acr: 'urn:example:gold' });
 */
export function allOf<P extends Combinable>(...policies: P): Combined<GivenByAll<P>> {
  return combine('all', policies);
}

/**
 * One of these is enough; they are tried in their order, and the first says what is refused. Throws `TypeError` for a
 * policy that cannot work.
 *
 * @example
 * const policy = anyOf({ scopes: ['read:messages'] }, { permissions: ['messages:read'] });
 */
export function anyOf<P extends Combinable>(...policies: P): Combined<GivenAlone<P[number]>> {
  return combine('any', policies);
}

function combine<C>(mode: PlainCombinedPolicy['mode'], policies: Combinable): Combined<C> {
  if (policies.some(Array.isArray)) {
    throw new TypeError(`${mode}Of: write the policies one behind the other, as in ${mode}Of(one, other), and no list`);
  }
  const combined: PlainCombinedPolicy = { mode, policies };
  checkPolicy(combined);
  return combined as Combined<C>; // what is missing is only for the compiler
}
