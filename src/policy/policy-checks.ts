import { type Check, createCheck } from '../check.ts';
import type { StepUp } from '../failures.ts';
import { isTime } from '../jose/numeric-date.ts';
import { findClaim } from '../token/claim-path.ts';
import { hasAudience } from '../token/claims.ts';
import type { JudgedToken, PolicyFacts } from '../token/token-policy.ts';

/** A check of a policy. The lists that it wants are those of the policy. */
export type PolicyCheck = Check<PolicyFacts>;

/** One of these is in `aud`, besides one that the server accepts: a route can accept fewer, and never another. */
export function requireAudience(audience: readonly string[]): PolicyCheck {
  const audiences = new Set(audience);
  return createCheck('policy_audience', 'invalid_audience', ({ token }) => hasAudience(token.claims.aud, audiences), {
    group: 'aud',
    compare: ({ token }) => ({ expected: audience, received: token.claims.aud }),
  });
}

/** All of these are elements of `scope`. */
export function requireScopes(scopes: readonly string[]): PolicyCheck {
  return createCheck(
    'scopes',
    'insufficient_scope',
    ({ token }) => {
      for (const scope of scopes) if (!token.scopes.has(scope)) return false;
      return true;
    },
    { details: () => ({ scopes }), compare: ({ token }) => ({ expected: scopes, received: token.scopes }) },
  );
}

/** One of these is an element of `scope`. */
export function requireAnyScope(scopes: readonly string[]): PolicyCheck {
  return createCheck(
    'any_scope',
    'no_accepted_scope',
    ({ token }) => {
      for (const scope of scopes) if (token.scopes.has(scope)) return true;
      return false;
    },
    { details: () => ({ scopes }), compare: ({ token }) => ({ expected: scopes, received: token.scopes }) },
  );
}

/** All of these are in the claim with the permissions. */
export function requirePermissions(permissions: readonly string[]): PolicyCheck {
  return createCheck(
    'permissions',
    'missing_permission',
    ({ token }) => {
      const held = readPermissions(token);
      return Array.isArray(held) && permissions.every((permission) => held.includes(permission));
    },
    { compare: () => ({ expected: permissions }) },
  );
}

/** `acr` is one of these (RFC 9470). */
export function requireAcr(stepUp: StepUp): PolicyCheck {
  return createCheck(
    'acr',
    'unaccepted_acr',
    ({ token }) => stepUp.acrValues.some((value) => value === token.claims['acr']),
    { details: () => ({ stepUp }), compare: () => ({ expected: stepUp.acrValues }) },
  );
}

/** The user signed in at most so many seconds ago (RFC 9470). */
export function requireAge(maxAge: number, stepUp: StepUp): readonly PolicyCheck[] {
  const details = () => ({ stepUp });
  return [
    // One from the future, or in milliseconds, would stay recent without end.
    createCheck(
      'auth_time',
      'missing_auth_time',
      ({ token: { claims, verifiedBy }, now }) =>
        isTime(claims['auth_time']) && claims['auth_time'] <= now + verifiedBy.issuer.nbfTolerance,
      { details },
    ),
    createCheck(
      'auth_age',
      'authentication_too_old',
      ({ token: { claims, verifiedBy }, now }) =>
        isTime(claims['auth_time']) && now - claims['auth_time'] <= maxAge + verifiedBy.issuer.expTolerance,
      {
        group: 'auth_time',
        details,
        compare: ({ token: { claims, verifiedBy }, now }) => ({
          received: claims['auth_time'],
          time: { now, past: maxAge + verifiedBy.issuer.expTolerance, ahead: verifiedBy.issuer.nbfTolerance },
        }),
      },
    ),
  ];
}

/** The value of the claim with the permissions, whatever it is. */
function readPermissions({ claims, verifiedBy }: JudgedToken): unknown {
  return findClaim(claims, verifiedBy.issuer.permissionsClaim);
}
