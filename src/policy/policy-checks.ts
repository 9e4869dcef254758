import { type Check, createCheck } from '../check.ts';
import type { StepUp } from '../failures.ts';
import { isTime } from '../jose/json.ts';
import { hasAudience } from '../token/claims.ts';
import { findPermissions } from '../token/grants.ts';
import type { JudgedToken, PolicyFacts } from '../token/token-policy.ts';
import type { FindGranting } from './implications.ts';

/** A check of a policy. The lists that it requires are the policy's. */
export type PolicyCheck = Check<PolicyFacts>;

/**
 * Requires one of these in `aud`, in addition to one that the server accepts: a route can accept fewer, and never another.
 */
export function requireAudience(audience: readonly string[]): PolicyCheck {
  const audiences = new Set(audience);
  return createCheck('policy_audience', ({ token }) => hasAudience(token.claims.aud, audiences), {
    compare: ({ token }) => ({ expected: audience, received: token.claims.aud }),
  });
}

/** All of these are elements of `scope`. */
export function requireScopes(scopes: readonly string[], findGranting: FindGranting = (scope) => [scope]): PolicyCheck {
  const granting = scopes.map(findGranting);
  return createCheck(
    'scopes',
    ({ token }) => {
      for (const names of granting) if (!hasAny(token, names)) return false;
      return true;
    },
    { details: () => ({ scopes }), compare: ({ token }) => ({ expected: scopes, received: token.scopes }) },
  );
}

/** One of these is an element of `scope`. */
export function requireAnyScope(
  scopes: readonly string[],
  findGranting: FindGranting = (scope) => [scope],
): PolicyCheck {
  const granting = scopes.flatMap(findGranting);
  return createCheck('any_scope', ({ token }) => hasAny(token, granting), {
    details: () => ({ scopes }),
    compare: ({ token }) => ({ expected: scopes, received: token.scopes }),
  });
}

function hasAny({ scopes }: JudgedToken, names: readonly string[]): boolean {
  for (const name of names) if (scopes.has(name)) return true;
  return false;
}

/** All of these are in the claim with the permissions. */
export function requirePermissions(permissions: readonly string[]): PolicyCheck {
  return createCheck(
    'permissions',
    ({ token }) => {
      const held = readPermissions(token);
      return Array.isArray(held) && permissions.every((permission) => held.includes(permission));
    },
    { compare: ({ token }) => ({ expected: permissions, received: readPermissions(token) }) },
  );
}

/** `acr` is one of these (RFC 9470). */
export function requireAcr(stepUp: StepUp): PolicyCheck {
  return createCheck('acr', ({ token }) => stepUp.acrValues.some((value) => value === token.claims['acr']), {
    details: () => ({ stepUp }),
    compare: () => ({ expected: stepUp.acrValues }),
  });
}

/** Requires that the user signed in at most `maxAge` seconds ago (RFC 9470). */
export function requireAge(maxAge: number, stepUp: StepUp): readonly PolicyCheck[] {
  const details = () => ({ stepUp });
  return [
    // One from the future, or in milliseconds, would stay recent without end.
    createCheck(
      'auth_time',
      ({ token: { claims, verifiedBy }, now }) =>
        isTime(claims['auth_time']) && claims['auth_time'] <= now + verifiedBy.issuer.nbfTolerance,
      { details },
    ),
    createCheck(
      'auth_age',
      ({ token: { claims, verifiedBy }, now }) =>
        isTime(claims['auth_time']) && now - claims['auth_time'] <= maxAge + verifiedBy.issuer.expTolerance,
      {
        details,
        compare: ({ token: { claims, verifiedBy }, now }) => ({
          received: claims['auth_time'],
          time: { now, past: maxAge + verifiedBy.issuer.expTolerance, ahead: verifiedBy.issuer.nbfTolerance },
        }),
      },
    ),
  ];
}

function readPermissions({ claims, verifiedBy }: JudgedToken): unknown {
  return findPermissions(claims, verifiedBy.issuer.permissionsClaim);
}
