import { isJsonObject, type JsonObject } from '../../jose/json.ts';
import { type Facts, namesOf } from '../facts.ts';
import { showText } from '../shown-text.ts';
import type { Cause } from './cause.ts';

const scopeReasons = ['insufficient_scope', 'no_accepted_scope'];

/** Whether some names are enough for the route. */
function isEnough(names: readonly string[], { force }: Facts): boolean {
  return force.scopes.length > 0 && force.scopes.some((scope) => names.includes(scope));
}

/** Claims in which providers put what users may do, apart from scopes. */
function rolesOf(claims: JsonObject): readonly (readonly [claim: string, names: readonly string[]])[] {
  const realm = isJsonObject(claims['realm_access']) ? namesOf(claims['realm_access']['roles']) : [];
  const named = ['roles', 'permissions', 'groups', 'authorities'].map((name) => [name, namesOf(claims[name])] as const);
  return [['realm_access.roles', realm] as const, ...named].filter(([, names]) => names.length > 0);
}

/** How scopes are read from another claim, or of another form, if this can be set. */
function readFrom({ force }: Facts, claim: string): string {
  return (
    force.labels.scopeClaim?.set(claim) ??
    `Let the provider write the scopes into scope as one text. The gate and the library can read ${claim} (scopeClaim); this service cannot.`
  );
}

/** Causes of missing scopes and permissions. */
export const scopeCauses: readonly Cause[] = [
  {
    id: 'scope_in_scp',
    reasons: scopeReasons,
    meaning: 'The scopes stand in the claim scp, as Okta and Microsoft Entra write them.',
    find: (facts) =>
      facts.seen.claims['scope'] === undefined && isEnough(namesOf(facts.seen.claims['scp']), facts)
        ? {
            certainty: 'certain',
            fix: readFrom(facts, 'scp'),
            note: `scope is absent, scp has ${showText(namesOf(facts.seen.claims['scp']).join(' '))}`,
          }
        : undefined,
  },
  {
    id: 'scope_not_granted',
    reasons: scopeReasons,
    meaning: 'The scope that the route needs is not among the scopes of the token: nobody asked for it, or granted it.',
    find: (facts) => {
      const { claims } = facts.seen;
      const { scope } = claims;
      if (isEnough(namesOf(claims['scp']), facts)) return undefined;
      // With commas it is enough, and only written in another way.
      const isWrittenOtherwise =
        typeof scope === 'string' && scope.includes(',') && isEnough(scope.split(/[\s,]+/), facts);
      if (isWrittenOtherwise || (scope !== undefined && typeof scope !== 'string')) return undefined;
      // A role of this name is the better explanation; permissions are often there besides scopes.
      const isRole = rolesOf(claims).some(([claim, names]) => claim !== 'permissions' && isEnough(names, facts));
      if (scope === undefined && isRole) return undefined;
      const held = namesOf(scope);
      const lacking = facts.force.scopes.filter((name) => !held.includes(name)).join(' ');
      return {
        certainty: scope === undefined ? 'likely' : 'certain',
        fix: `Let the client ask for scope=${lacking}, and grant it to the client at the provider.`,
        note: scope === undefined ? 'the token has no scopes' : `the token lacks ${lacking}`,
      };
    },
  },
  {
    id: 'roles_instead_of_scope',
    reasons: scopeReasons,
    meaning: 'The provider wrote roles or permissions into the token, and the route asks for a scope.',
    find: (facts) => {
      const { claims } = facts.seen;
      if (isEnough(namesOf(claims['scp']), facts)) return undefined;
      const roles = rolesOf(claims);
      const [claim] = roles.find(([, names]) => isEnough(names, facts)) ?? (claims['scope'] ? [] : (roles[0] ?? []));
      if (claim === undefined) return undefined;
      return {
        certainty: 'likely',
        fix: 'At the provider, map the role to a scope of this API, and let the client ask for that scope.',
        ...(facts.force.labels.permissionsClaim !== undefined && {
          or: `let the route ask for permissions instead of scopes (${facts.force.labels.permissionsClaim.name})`,
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
        certainty: 'certain',
        fix: 'Let the provider write scope as one text with single spaces (RFC 6749 §3.3).',
        note: 'commas in scope',
      };
    },
  },
  {
    id: 'scope_as_list',
    reasons: ['malformed_scope'],
    meaning: 'The provider writes scope as a list, and RFC 9068 wants one text.',
    find: (facts) =>
      Array.isArray(facts.seen.claims['scope'])
        ? {
            certainty: 'certain',
            fix: 'Let the provider write scope as one text with single spaces (RFC 9068 §2.2.3).',
            or: readFrom(facts, 'scope'),
            note: 'scope is a list',
          }
        : undefined,
  },
  {
    id: 'machine_token_without_sub',
    reasons: ['malformed_sub'],
    meaning: 'The provider leaves sub out of tokens that a program got for itself.',
    find: ({ seen: { claims }, force }) => {
      const isNamed = typeof claims['client_id'] === 'string' || typeof claims['azp'] === 'string';
      if (claims['sub'] !== undefined || !isNamed) return undefined;
      const { subject } = force.labels;
      const atProvider = 'Let the provider put sub into these tokens (RFC 9068 §2.2).';
      return {
        certainty: 'certain',
        ...(subject === undefined ? { fix: atProvider } : { fix: subject.set('optional'), or: atProvider }),
        note: 'the client is named and sub is absent',
      };
    },
  },
];
