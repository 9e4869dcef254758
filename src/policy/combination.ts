import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Claims } from '../token/claims.ts';
import { checkPolicy } from './checked-policy.ts';
import type { CombinedPolicy, PlainCombinedPolicy, Policy } from './policy.ts';

type Combinable = readonly [Policy<unknown>, ...(readonly Policy<unknown>[])];

/** Output of a schema anywhere in a policy; `unknown` without one. */
type Given<P> = P extends { readonly claims: StandardSchemaV1<unknown, infer C> }
  ? C
  : P extends CombinedPolicy<infer C>
    ? Claims extends C
      ? unknown
      : C
    : unknown;

/** Output of a policy without other policies. */
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
 * All of these must hold. If several have a schema, the handler gets the members of each; a later schema wins. Throws
 * `TypeError` for an invalid policy.
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
