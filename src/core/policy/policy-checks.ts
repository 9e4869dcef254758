import { type Check, createCheck } from '../checks.ts';
import type { StepUp } from '../failures.ts';
import { isJsonObject, isTime } from '../jose/json.ts';
import { checkMembers, isPlain } from '../option-members.ts';
import { hasAudience } from '../token/claims.ts';
import { findPermissions, readActor } from '../token/grants.ts';
import type { PolicyFacts } from '../token/token-policy.ts';
import type { AllowedActor, Requirements } from './policy.ts';

/** A check of a policy. The lists that it requires are the policy's. */
export type PolicyCheck = Check<PolicyFacts>;

/** Creates the checks of one member. Throws `TypeError` for a value that cannot work. */
type Require = (value: unknown, policy: Requirements) => readonly PolicyCheck[];

/** The members of a policy, in the order of their checks. */
export const requirements: Readonly<Record<keyof Requirements | 'claims', Require>> = {
  audience(value) {
    const audience = readStrings('audience', listOf(value), textGrammar);
    const audiences = new Set(audience);
    return [
      createCheck('policy_audience', ({ token }) => hasAudience(token.claims.aud, audiences), {
        compare: ({ token }) => ({ expected: audience, received: token.claims.aud }),
      }),
    ];
  },
  scopes(value, { implies }) {
    const scopes = readStrings('scopes', value);
    const listGranting = readImplications(implies);
    const granting = scopes.map((scope) => listGranting(scope));
    const hasAll = (facts: PolicyFacts): boolean => {
      for (const names of granting) if (!hasAny(facts, names)) return false;
      return true;
    };
    return [createCheck('scopes', hasAll, describeScopes(scopes))];
  },
  anyScope(value, { implies }) {
    const scopes = readStrings('anyScope', value);
    const granting = readImplications(implies)(...scopes);
    return [createCheck('any_scope', (facts) => hasAny(facts, granting), describeScopes(scopes))];
  },
  permissions(value) {
    const expected = readStrings('permissions', value, textGrammar);
    const find = ({ token: { claims, verifiedBy } }: PolicyFacts): unknown =>
      findPermissions(claims, verifiedBy.issuer.permissionsClaim);
    const hasAll = (facts: PolicyFacts): boolean => {
      const held = find(facts);
      return Array.isArray(held) && expected.every((permission) => held.includes(permission));
    };
    return [createCheck('permissions', hasAll, { compare: (facts) => ({ expected, received: find(facts) }) })];
  },
  implies(value) {
    readImplications(value);
    return [];
  },
  actor: requireActor,
  acr(_value, policy) {
    const stepUp = readStepUp(policy);
    return [
      createCheck('acr', ({ token }) => stepUp.acrValues.some((value) => value === token.claims['acr']), {
        details: () => ({ stepUp }),
        compare: ({ token }) => ({ expected: stepUp.acrValues, received: token.claims['acr'] }),
      }),
    ];
  },
  maxAge: requireAge,
  claims: () => [],
};

function hasAny({ token: { scopes } }: PolicyFacts, names: readonly string[]): boolean {
  for (const name of names) if (scopes.has(name)) return true;
  return false;
}

function describeScopes(scopes: readonly string[]): Partial<Pick<PolicyCheck, 'details' | 'compare'>> {
  return { details: () => ({ scopes }), compare: ({ token }) => ({ expected: scopes, received: token.scopes }) };
}

/** Requires that the user signed in at most `maxAge` seconds ago (RFC 9470). */
function requireAge(_value: unknown, policy: Requirements): readonly PolicyCheck[] {
  const stepUp = readStepUp(policy);
  const { maxAge = 0 } = stepUp;
  const details = () => ({ stepUp });
  // A time in the future, or in milliseconds, would stay recent without end.
  const isKnown = ({ token, now }: PolicyFacts): boolean => {
    const { auth_time: time } = token.claims;
    return isTime(time) && time <= now + token.verifiedBy.issuer.nbfTolerance;
  };
  const isRecent = ({ token, now }: PolicyFacts): boolean => {
    const { auth_time: time } = token.claims;
    return isTime(time) && now - time <= maxAge + token.verifiedBy.issuer.expTolerance;
  };
  const compare: PolicyCheck['compare'] = ({ token: { claims, verifiedBy }, now }) => {
    const { expTolerance, nbfTolerance } = verifiedBy.issuer;
    return { received: claims['auth_time'], time: { now, past: maxAge + expTolerance, ahead: nbfTolerance } };
  };
  return [createCheck('auth_time', isKnown, { details }), createCheck('auth_age', isRecent, { details, compare })];
}

/** Both checks state everything that is needed: a client that steps up does it once. */
function readStepUp({ acr, maxAge }: Requirements): StepUp {
  const acrValues = acr === undefined ? [] : readStrings('acr', listOf(acr));
  if (maxAge !== undefined && !(Number.isSafeInteger(maxAge) && maxAge >= 0)) {
    throw new TypeError('policy: write maxAge in whole seconds, 0 or more');
  }
  return { acrValues, maxAge };
}

function requireActor(policy: unknown): readonly PolicyCheck[] {
  if (policy === 'forbidden') return [createCheck('actor', ({ token }) => token.claims['act'] === undefined)];
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
  if (typeof entry !== 'object' || entry === null) {
    throw new TypeError('policy: each actor must be an object with a sub');
  }
  checkMembers('actor', entry, ['iss', 'sub']);
  const { iss, sub } = entry as Readonly<Record<string, unknown>>;
  if (typeof sub !== 'string' || sub === '') throw new TypeError('policy: sub of an actor must be a string, not empty');
  if (iss !== undefined && typeof iss !== 'string') throw new TypeError('policy: iss of an actor must be a string');
  return iss === undefined ? { sub } : { iss, sub };
}

const none = {};

/** Reads `implies`, transitively. Returns the function that lists all scopes that grant one of several, these included. */
function readImplications(implies: unknown = none): (...scopes: readonly string[]) => readonly string[] {
  if (implies !== none && !isPlain(implies)) {
    throw new TypeError("policy: implies must be an object, as in { 'files:write': ['files:read'] }");
  }
  /** Scopes that include a scope directly. */
  const including = new Map<string, string[]>();
  /** Number of included scopes of each scope that are not known to end. */
  const endless = new Map<string, number>();
  const ending = new Set<string>();
  for (const [scope, value] of Object.entries(implies)) {
    readStrings('implies', [scope]);
    const included = readStrings('implies', value);
    endless.set(scope, included.length);
    for (const each of included) {
      const known = including.get(each);
      if (known === undefined) including.set(each, [scope]);
      else known.push(scope);
    }
  }
  for (const scope of including.keys()) if (!endless.has(scope)) ending.add(scope);
  // A set yields what is added meanwhile, so that each scope and each inclusion is visited once.
  for (const scope of ending) {
    for (const above of including.get(scope) ?? []) {
      const left = Number(endless.get(above)) - 1;
      endless.set(above, left);
      if (left === 0) ending.add(above);
    }
  }
  for (const left of endless.values()) if (left > 0) throw new TypeError('policy: implies has a cycle');
  return (...scopes) => {
    const granting = new Set(scopes);
    for (const scope of granting) for (const above of including.get(scope) ?? []) granting.add(above);
    return [...granting];
  };
}

// RFC 6749 §3.3 scope-token; acr_values are separated by spaces as well.
const scopeGrammar = /^[\x21\x23-\x5b\x5d-\x7e]+$/;
const textGrammar = /./;

/** Reads a list of strings that match a grammar, by default scopes. */
function readStrings(name: string, value: unknown, grammar = scopeGrammar): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new TypeError(`policy: ${name} must be a list with at least one string; leave it out to require none`);
  }
  // `every` skips holes.
  if (![...value].every((each) => typeof each === 'string' && grammar.test(each))) {
    throw new TypeError(`policy: ${name} must have one string for each, without spaces and quotation marks`);
  }
  return [...value];
}

function listOf(value: unknown): unknown {
  return typeof value === 'string' ? [value] : value;
}
