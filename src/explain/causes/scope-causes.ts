import { isJsonObject, type JsonObject } from '../../jose/json.ts';
import { showText } from '../../shown-text.ts';
import { type Facts, namesOf } from '../facts.ts';
import type { Cause } from './cause.ts';

const scopeClaims = [
  {
    id: 'scope_in_scp',
    claim: 'scp',
    meaning: 'The scopes are in the claim scp, as Okta and Microsoft Entra write them.',
  },
  { id: 'scope_in_scopes', claim: 'scopes', meaning: 'The scopes are in a claim scopes instead of scope.' },
] as const;

const scopeReasons = ['insufficient_scope', 'no_accepted_scope'];

function isEnough(names: readonly string[], { force }: Facts): boolean {
  return force.scopes.length > 0 && force.scopes.some((scope) => names.includes(scope));
}

/** The scopes of the token that equal the required ones except for a prefix, such as `https://api.example/`, and those. */
function findPrefixed({ seen, force }: Facts): readonly [readonly string[], readonly string[]] | undefined {
  const { scope, scp } = seen.claims;
  const held = namesOf(scope ?? scp);
  const written = force.scopes.map((name) =>
    held.find((each) => each === name || each.endsWith(`/${name}`) || name.endsWith(`/${each}`)),
  );
  if (force.scopes.length === 0 || force.scopes.every((name) => held.includes(name))) return undefined;
  return written.every((name) => name !== undefined) ? [written, force.scopes] : undefined;
}

function rolesOf(claims: JsonObject): readonly (readonly [claim: string, names: readonly string[]])[] {
  const realm = isJsonObject(claims['realm_access']) ? namesOf(claims['realm_access']['roles']) : [];
  const named = ['roles', 'permissions', 'groups', 'authorities'].map((name) => [name, namesOf(claims[name])] as const);
  return [['realm_access.roles', realm] as const, ...named].filter(([, names]) => names.length > 0);
}

function isInOtherClaim(facts: Facts): boolean {
  return scopeClaims.some(({ claim }) => isEnough(namesOf(facts.seen.claims[claim]), facts));
}

/** The setting that reads scopes from another claim or form, if the command has it. */
function readFrom({ force }: Facts, claim: string): string {
  return (
    force.labels.scopeClaim?.set(claim) ??
    `At the provider, write the scopes into scope as one string. The gate and the library can read ${claim} (scopeClaim); this service cannot.`
  );
}

export const scopeCauses: readonly Cause[] = [
  ...scopeClaims.map(
    ({ id, claim, meaning }): Cause => ({
      id,
      reasons: scopeReasons,
      meaning,
      find: (facts) => {
        const names = namesOf(facts.seen.claims[claim]);
        if (facts.seen.claims['scope'] !== undefined || !isEnough(names, facts)) return undefined;
        return {
          fix: readFrom(facts, claim),
          note: `scope is absent, ${claim} has ${showText(names.join(' '))}`,
          trial:
            facts.force.labels.scopeClaim === undefined
              ? { claims: { scope: names.join(' ') } }
              : { scopeClaim: claim },
        };
      },
    }),
  ),
  {
    id: 'scope_prefixed',
    reasons: scopeReasons,
    meaning: 'The scopes of the token and of the route differ by the identifier of the API before them.',
    find: (facts) => {
      const full = findPrefixed(facts);
      if (full === undefined) return undefined;
      const [written, required] = full;
      return {
        fix: `Require the scope as the provider writes it: ${showText(written.join(' '))}`,
        note: `the token has ${showText(written.join(' '))}, the route requires ${showText(required.join(' '))}`,
        trial: { scopes: written },
      };
    },
  },
  {
    id: 'scope_not_granted',
    reasons: scopeReasons,
    meaning:
      'The token lacks a scope that the route requires: the client did not request it, or the provider did not grant it.',
    find: (facts) => {
      const { claims } = facts.seen;
      const { scope } = claims;
      if (isInOtherClaim(facts) || findPrefixed(facts) !== undefined) return undefined;
      // With commas it is sufficient: scope_with_commas.
      const isWrittenOtherwise =
        typeof scope === 'string' && scope.includes(',') && isEnough(scope.split(/[\s,]+/), facts);
      if (isWrittenOtherwise || (scope !== undefined && typeof scope !== 'string')) return undefined;
      // A role of this name is the better explanation; many tokens have both scopes and permissions.
      const isRole = rolesOf(claims).some(([claim, names]) => claim !== 'permissions' && isEnough(names, facts));
      if (scope === undefined && isRole) return undefined;
      const held = namesOf(scope);
      const lacking = facts.force.scopes.filter((name) => !held.includes(name)).join(' ');
      return {
        fix: `Request scope=${lacking} in the client, and grant it to the client at the provider.`,
        ...(scope !== undefined && { trial: { claims: { scope: [...held, ...facts.force.scopes].join(' ') } } }),
        note: scope === undefined ? 'the token has no scopes' : `the token lacks ${lacking}`,
      };
    },
  },
  {
    id: 'roles_instead_of_scope',
    reasons: scopeReasons,
    meaning: 'The token has roles or permissions, and the route requires a scope.',
    find: (facts) => {
      const { claims } = facts.seen;
      if (isInOtherClaim(facts) || findPrefixed(facts) !== undefined) return undefined;
      const roles = rolesOf(claims);
      const [claim] = roles.find(([, names]) => isEnough(names, facts)) ?? (claims['scope'] ? [] : (roles[0] ?? []));
      if (claim === undefined) return undefined;
      return {
        fix: 'At the provider, map the role to a scope of this API, and request that scope in the client.',
        ...(facts.force.labels.permissionsClaim !== undefined && {
          or: `require permissions instead of scopes for the route (${facts.force.labels.permissionsClaim.name})`,
        }),
        note: `the token has ${claim}`,
      };
    },
  },
  {
    id: 'scope_with_commas',
    reasons: scopeReasons,
    meaning: 'The scopes are separated by commas, and RFC 6749 separates them by spaces.',
    find: (facts) => {
      const { scope } = facts.seen.claims;
      if (typeof scope !== 'string' || !scope.includes(',') || !isEnough(scope.split(/[\s,]+/), facts))
        return undefined;
      return {
        fix: 'At the provider, write scope as one string with single spaces (RFC 6749 §3.3).',
        note: 'commas in scope',
        trial: { claims: { scope: scope.split(/[\s,]+/).join(' ') } },
      };
    },
  },
  {
    id: 'scope_as_list',
    reasons: ['malformed_scope'],
    meaning: 'The provider writes scope as an array, and RFC 9068 requires one string.',
    find: (facts) =>
      Array.isArray(facts.seen.claims['scope']) && {
        fix: 'At the provider, write scope as one string with single spaces (RFC 9068 §2.2.3).',
        or: readFrom(facts, 'scope'),
        note: 'scope is an array',
        trial: { claims: { scope: namesOf(facts.seen.claims['scope']).join(' ') } },
      },
  },
  {
    id: 'machine_token_without_sub',
    reasons: ['malformed_sub'],
    meaning: 'The provider omits sub in tokens of the client credentials grant.',
    find: ({ seen: { claims }, force }) => {
      const isNamed = typeof claims['client_id'] === 'string' || typeof claims['azp'] === 'string';
      if (claims['sub'] !== undefined || !isNamed) return undefined;
      const { subject } = force.labels;
      const atProvider = 'At the provider, add sub to these tokens (RFC 9068 §2.2).';
      return {
        ...(subject === undefined ? { fix: atProvider } : { fix: subject.set('optional'), or: atProvider }),
        note: 'the token names the client, and sub is absent',
        trial: subject === undefined ? { claims: { sub: 'a client' } } : { subject: 'optional' },
      };
    },
  },
];
