import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { showText } from '../../core/shown-text.ts';
import { type Facts, namesOf } from '../facts.ts';
import type { Cause } from './cause.ts';

const addSub = 'At the provider, add sub to these tokens (RFC 9068 §2.2).';

const scopeReasons = ['insufficient_scope', 'no_accepted_scope'];

function isEnough(names: readonly string[], { force }: Facts): boolean {
  return force.scopes.some((scope) => names.includes(scope));
}

/** The required names, if commas separate the scopes. */
function splitCommas(scope: unknown): readonly string[] {
  return typeof scope === 'string' && scope.includes(',') ? scope.split(/[\s,]+/) : [];
}

function rolesOf(claims: JsonObject): readonly (readonly [claim: string, names: readonly string[]])[] {
  const realm = isJsonObject(claims['realm_access']) ? claims['realm_access']['roles'] : [];
  const named = ['roles', 'permissions', 'groups', 'authorities'].map((name) => [name, claims[name]] as const);
  return [['realm_access.roles', realm] as const, ...named]
    .map(([claim, names]) => [claim, namesOf(names)] as const)
    .filter(([, names]) => names.length > 0);
}

/** The setting that reads scopes from another claim or form, if the command has it. */
function readFrom({ force }: Facts, claim: string): string {
  return (
    force.labels.scopeClaim?.set(claim) ??
    `At the provider, write the scopes into scope as one string. The gate and the library can read ${claim} (scopeClaim); this service cannot.`
  );
}

export const scopeCauses: readonly Cause[] = [
  {
    id: 'scope_in_scp',
    reasons: scopeReasons,
    meaning: 'The scopes are in the claim scp, as Okta and Microsoft Entra write them.',
    fix: 'Read the scopes from scp (scopeClaim), or write them into scope at the provider.',
    find: (facts) => {
      const { seen, force } = facts;
      const names = namesOf(seen.claims['scp']);
      if (seen.claims['scope'] !== undefined || !isEnough(names, facts)) return undefined;
      const scope = names.join(' ');
      return {
        fix: readFrom(facts, 'scp'),
        note: `scope is absent, scp has ${showText(scope)}`,
        trial: force.labels.scopeClaim === undefined ? { claims: { scope } } : { scopeClaim: 'scp' },
      };
    },
  },
  {
    id: 'scope_not_granted',
    reasons: scopeReasons,
    meaning:
      'The token lacks a scope that the route requires: the client did not request it, or the provider did not grant it.',
    fix: 'Request the scope in the client, and grant it to the client at the provider.',
    find: (facts) => {
      const { scope, scp } = facts.seen.claims;
      const { scopes } = facts.force;
      // With commas or in scp it is sufficient: scope_with_commas, scope_in_scp.
      if (isEnough(namesOf(scp), facts) || isEnough(splitCommas(scope), facts)) return undefined;
      if (scope !== undefined && typeof scope !== 'string') return undefined;
      const held = namesOf(scope);
      const lacking = scopes.filter((name) => !held.includes(name)).join(' ');
      const fix = `Request scope=${lacking} in the client, and grant it to the client at the provider.`;
      if (scope !== undefined) {
        return {
          fix,
          trial: { claims: { scope: [...held, ...scopes].join(' ') } },
          note: `the token lacks ${lacking}`,
        };
      }
      // A role of this name is the better explanation; many tokens have both scopes and permissions.
      const isRole = rolesOf(facts.seen.claims).some(
        ([claim, names]) => claim !== 'permissions' && isEnough(names, facts),
      );
      return !isRole && { fix, note: 'the token has no scopes' };
    },
  },
  {
    id: 'permission_not_granted',
    reasons: ['missing_permission'],
    meaning:
      'The token lacks a permission that the route requires: the provider did not assign it, or does not send it.',
    fix: 'At the provider, assign the permission to the user or the client, and put permissions into access tokens.',
    find: ({ held, force: { permissions } }) => {
      const names = namesOf(held);
      if (names.length === 0) return { note: 'the token has no permissions' };
      const lacking = showText(permissions.filter((name) => !names.includes(name)).join(' '));
      return {
        note: `the token lacks ${lacking}`,
        fix: `At the provider, assign ${lacking} to the user or the client.`,
        trial: { claims: { permissions: [...names, ...permissions] } },
      };
    },
  },
  {
    id: 'roles_instead_of_scope',
    reasons: scopeReasons,
    meaning: 'The token has roles or permissions, and the route requires a scope.',
    fix: 'At the provider, map the role to a scope of this API, and request that scope in the client.',
    find: (facts) => {
      const { scope, scp } = facts.seen.claims;
      const { permissionsClaim } = facts.force.labels;
      if (isEnough(namesOf(scp), facts)) return undefined;
      const roles = rolesOf(facts.seen.claims);
      const [claim] = roles.find(([, names]) => isEnough(names, facts)) ?? (scope ? [] : (roles[0] ?? []));
      if (claim === undefined) return undefined;
      const note = `the token has ${claim}`;
      if (permissionsClaim === undefined) return { note };
      return { note, or: `require permissions instead of scopes for the route (${permissionsClaim.name})` };
    },
  },
  {
    id: 'scope_with_commas',
    reasons: scopeReasons,
    meaning: 'The scopes are separated by commas, and RFC 6749 separates them by spaces.',
    fix: 'At the provider, write scope as one string with single spaces (RFC 6749 §3.3).',
    note: 'commas in scope',
    find: (facts) => {
      const names = splitCommas(facts.seen.claims['scope']);
      return isEnough(names, facts) && { trial: { claims: { scope: names.join(' ') } } };
    },
  },
  {
    id: 'scope_as_list',
    reasons: ['malformed_scope'],
    meaning: 'The provider writes scope as an array, and RFC 9068 requires one string.',
    fix: 'At the provider, write scope as one string with single spaces (RFC 9068 §2.2.3).',
    note: 'scope is an array',
    find: (facts) => {
      const { scope } = facts.seen.claims;
      if (!Array.isArray(scope)) return undefined;
      return { or: readFrom(facts, 'scope'), trial: { claims: { scope: namesOf(scope).join(' ') } } };
    },
  },
  {
    id: 'machine_token_without_sub',
    reasons: ['malformed_sub'],
    meaning: 'The provider omits sub in tokens of the client credentials grant, or writes null or an empty string.',
    fix: addSub,
    find: ({ seen: { claims }, force: { labels } }) => {
      const isNamed = typeof claims['client_id'] === 'string' || typeof claims['azp'] === 'string';
      const { sub } = claims;
      const form = sub === null ? 'null' : sub === '' ? 'empty' : 'absent';
      if (sub || (!isNamed && form === 'absent')) return undefined;
      const note = `${isNamed ? 'the token names the client, and ' : ''}sub is ${form}`;
      // Optional, it may be absent or null, and is never empty.
      if (labels.subject === undefined || form === 'empty') return { note, trial: { claims: { sub: 'a client' } } };
      return { note, fix: labels.subject.set('optional'), or: addSub, trial: { subject: 'optional' } };
    },
  },
  {
    id: 'claim_of_condition',
    reasons: ['condition_not_met'],
    meaning: 'A claim has another value than the condition of the rule requires, or is absent.',
    fix: 'At the provider, put the value that the condition requires into the claim, or correct "when" of the rule.',
    find: ({ wanted, seen: { claims } }) => {
      const [name] = Object.keys(wanted ?? {});
      if (wanted === undefined || name === undefined) return undefined;
      return {
        trial: { claims: wanted },
        note: `${name} is ${claims[name] === undefined ? 'absent' : 'another value'}`,
      };
    },
  },
];
