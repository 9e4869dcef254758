import { createCheck } from '../check.ts';
import { isJsonObject } from '../jose/json.ts';
import { readActor } from '../token/claims.ts';
import type { PolicyFacts } from '../token/token-policy.ts';
import { checkMembers } from './members.ts';
import type { PolicyCheck } from './policy-checks.ts';

/** An actor that a policy allows. Default of `iss`: the issuer of the token. */
export interface AllowedActor {
  readonly iss?: string;
  readonly sub: string;
}

/** Requirement on the outermost actor: none, any, or one of a list. */
export type ActorPolicy = 'forbidden' | 'required' | readonly AllowedActor[];

/** Requires that the outermost actor fulfils the policy. Throws `TypeError` for an invalid policy. */
export function requireActor(policy: unknown): readonly PolicyCheck[] {
  if (policy === 'forbidden') return [createCheck('actor', (facts) => facts.token.claims['act'] === undefined)];
  const present = createCheck<PolicyFacts>('actor_present', ({ token }) => readActor(token.claims)?.sub !== undefined);
  if (policy === 'required') return [present];
  if (!Array.isArray(policy) || policy.length === 0) {
    throw new TypeError(
      "policy: actor must be 'forbidden', 'required', or a list such as [{ sub: 'agent-1' }], not empty",
    );
  }
  const allowed = policy.map(readAllowed);
  const isAllowed = ({ token: { claims } }: PolicyFacts): boolean => {
    const { act } = claims;
    if (!isJsonObject(act)) return false;
    const issuer = act['iss'] === undefined ? claims.iss : act['iss'];
    return allowed.some(({ iss = claims.iss, sub }) => act['sub'] === sub && issuer === iss);
  };
  return [present, createCheck('actor', isAllowed)];
}

function readAllowed(entry: unknown): AllowedActor {
  if (typeof entry !== 'object' || entry === null)
    throw new TypeError('policy: each actor must be an object with a sub');
  checkMembers('actor', entry, ['iss', 'sub']);
  const { iss, sub } = entry as Readonly<Record<string, unknown>>;
  if (typeof sub !== 'string' || sub === '') throw new TypeError('policy: sub of an actor must be a string, not empty');
  if (iss !== undefined && typeof iss !== 'string') throw new TypeError('policy: iss of an actor must be a string');
  return iss === undefined ? { sub } : { iss, sub };
}
