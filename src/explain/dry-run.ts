/**
 * A dry run calls the stages of the authorization (`judgement.ts`) in the same order, with a walk, and goes on after a refusal
 * as far as the next stage has inputs. It changes nothing: it caches no token, fetches no key and consumes no proof.
 */
import type { CheckId } from '../core/checks.ts';
import { AccessError } from '../core/failures.ts';
import { type Credentials, readCredentials } from '../core/http/credentials.ts';
import type { ExternalUrl } from '../core/http/external-url.ts';
import type { Connection, ResourceRequest } from '../core/http/request.ts';
import type { JsonObject } from '../core/jose/json.ts';
import { isKid, type Jws } from '../core/jose/jws.ts';
import type { KeySet } from '../core/keys/key-set.ts';
import { omitUndefined } from '../core/option-members.ts';
import { Refused } from '../core/refused.ts';
import { findIntrospection, hashToken, openStages, type ReadRequest } from '../core/resource-server/judgement.ts';
import type { JudgementRules } from '../core/resource-server/server-rules.ts';
import {
  type AccessTokenRules,
  type IssuerRules,
  type ValidToken,
  verifyAccessToken,
} from '../core/token/access-token.ts';
import { type Confirmation, readRegistered } from '../core/token/claims.ts';
import { readScopes } from '../core/token/grants.ts';
import type { CheckedPolicy, PolicyFacts } from '../core/token/token-policy.ts';
import { openWalk, type Step, type Walk } from '../core/walk.ts';

export interface DryCall {
  readonly request: ResourceRequest;
  readonly policy: CheckedPolicy;
  readonly connection: Connection | undefined;
  /** Seconds since the epoch. */
  readonly now: number;
  /** Keys that replace the server's own. */
  readonly keys?: KeySet | undefined;
  /** `ask`: the introspection endpoint is queried. Default: a token that needs it stays undecided. */
  readonly introspection?: 'ask' | undefined;
}

/** Results of the stages, as each notes its own in the walk. */
interface StageValues extends Partial<Record<CheckId, unknown>> {
  readonly url: ExternalUrl;
  readonly credentials: Credentials;
  readonly shape: Jws;
  readonly claims_form: JsonObject;
  readonly introspection: ValidToken;
  readonly issuer: IssuerRules;
  readonly confirmation: Confirmation;
  readonly client_certificate: string;
  readonly proof_claims_form: JsonObject;
}

const resultOf = <Id extends keyof StageValues & CheckId>({ values }: Walk, id: Id) =>
  values.get(id) as StageValues[Id] | undefined; // the stage of this id has noted it

/** Makes every step of an authorization, in the order of `checks`. Rejects with errors of issuer resolvers and schemas. */
export async function dryRun(rules: JudgementRules, call: DryCall) {
  const walk = openWalk();
  const trusted = await walkRequest(walk, rules, call);
  const { steps } = walk;
  const decisive = steps.find(({ verdict }) => verdict === 'fail' || verdict === 'unknown');
  const refused = decisive?.verdict === 'fail' ? 'refused' : 'undecided';
  const verdict: 'admitted' | 'refused' | 'undecided' = decisive === undefined ? 'admitted' : refused;
  return { verdict, reason: walk.refusal()?.reason, steps, gathered: gather(walk, { rules, call, trusted }) };
}

export type DryRun = Awaited<ReturnType<typeof dryRun>>;

/** Returns the inputs of the steps. Claims are verified only if `isVerified`. */
function gather(walk: Walk, walked: { rules: JudgementRules; call: DryCall; trusted: AccessTokenRules | undefined }) {
  const opened = resultOf(walk, 'introspection');
  const credentials = resultOf(walk, 'credentials');
  const claims: JsonObject | undefined = opened?.claims ?? resultOf(walk, 'claims_form');
  const confirmation: Confirmation | undefined = opened ?? resultOf(walk, 'confirmation');
  return {
    ...{ ...walked, credentials, claims, confirmation },
    url: resultOf(walk, 'url'),
    header: resultOf(walk, 'shape')?.header,
    isVerified: isVerified(walk),
    // The issuer of `iss`; if it is not trusted and there is only one, that one, for its rules.
    issuer: resultOf(walk, 'issuer'),
    presented: resultOf(walk, 'client_certificate'),
    proofClaims: resultOf(walk, 'proof_claims_form'),
    ath: credentials && hashToken(credentials.token),
  };
}

export type Gathered = ReturnType<typeof gather>;

type SeenToken = Pick<ValidToken, 'claims' | 'scopes' | 'verifiedBy'>;

const isVerified = (walk: Walk): boolean => walk.hasPassed('signature') || walk.hasPassed('introspection');

async function walkRequest(walk: Walk, rules: JudgementRules, call: DryCall): Promise<AccessTokenRules | undefined> {
  const { request, connection, now } = call;
  const url = walk.stage('url', rules.readExternalUrl(request, connection));
  const read = readCredentials(request.headers, rules.mode);
  // The token is read even if the scheme is not accepted here.
  const lenient = read instanceof Refused ? readCredentials(request.headers, 'allowed') : read;
  const credentials = walk.proceed('credentials', read, lenient instanceof Refused ? undefined : lenient);
  if (url instanceof Refused || credentials instanceof Refused) return undefined;
  const text = (await rules.decryption?.decrypt(credentials.token)) ?? credentials.token;
  if (text instanceof Refused) {
    walk.stage('shape', text);
    return undefined;
  }
  const found = await settle(() => rules.issuers.find(request, url, text));
  if (found instanceof Refused) {
    walk.stage('issuer', found);
    return undefined;
  }
  const trusted = observe(found, walk, call.keys);
  const asRead: ReadRequest = { request, connection, url, credentials, text, walk };
  const { verifyByIntrospection, verifyBinding } = openStages(rules);
  const asked = rules.introspection && findIntrospection(rules.introspection, text, trusted);
  if (asked === undefined) verifyAccessToken(text, trusted, now);
  else if (call.introspection === 'ask') {
    walk.stage('introspection', await settle(() => verifyByIntrospection(trusted, asRead, asked)));
  } else if (rules.opaqueRules === undefined && !trusted.issuers.has(asked.issuer)) {
    walk.stage('introspection', new Refused('invalid_issuer'));
  } else walk.leave('unknown', 'introspection');
  const token = readSeen(walk);
  if (token === undefined) return trusted;
  await walkWithdrawal(walk, rules, token);
  const confirmation = resultOf(walk, 'introspection') ?? resultOf(walk, 'confirmation');
  if (confirmation !== undefined) verifyBinding(confirmation, asRead, now);
  const jwt = asked === undefined ? text : undefined;
  const facts = { token, now, jwt, conditionCall: request.conditionCall };
  for (const policy of [token.verifiedBy.issuer.policy, call.policy]) {
    if (policy !== undefined) for (const step of await walkPolicy(policy, facts, isVerified(walk))) walk.add(step);
  }
  if (credentials.proof !== undefined && rules.replay !== 'off') walk.leave('skipped', 'replay');
  return trusted;
}

/** Returns the rules of trusted issuers for a dry run, which adds no header to the verified ones. */
function observe({ headers, issuers, ...rules }: AccessTokenRules, walk: Walk, keys?: KeySet): AccessTokenRules {
  return {
    ...rules,
    headers: { get: (text) => headers.get(text), set: () => undefined },
    issuers: keys === undefined ? issuers : new Map([...issuers].map(([name, each]) => [name, { ...each, keys }])),
    walk,
  };
}

/** The authorization treats a refusal that the application throws as its own. */
async function settle<T>(stage: () => T | AccessError | Promise<T | AccessError>): Promise<T | Refused> {
  try {
    const outcome = await stage();
    if (!(outcome instanceof AccessError)) return outcome;
    throw outcome;
  } catch (error) {
    if (!(error instanceof AccessError)) throw error;
    return error instanceof Refused ? error : new Refused(error.reason, omitUndefined(error));
  }
}

/** Readable parts of the token: its signature and its claims may be wrong. */
function readSeen(walk: Walk): SeenToken | undefined {
  const claims = resultOf(walk, 'claims_form');
  const issuer = resultOf(walk, 'issuer');
  if (claims === undefined || issuer === undefined) return resultOf(walk, 'introspection');
  const kid = resultOf(walk, 'shape')?.header['kid'];
  return {
    claims: readRegistered(claims), // the steps after this take any value of any claim
    scopes: readScopes(claims, issuer.scopeClaim),
    verifiedBy: { issuer, kid: isKid(kid) ? kid : undefined },
  };
}

async function walkWithdrawal(walk: Walk, rules: JudgementRules, token: SeenToken): Promise<void> {
  for (const { id, refuse } of rules.withdrawal) {
    // The application's own check gets only claims that a trusted issuer has signed.
    if (id === 'is_revoked' && !isVerified(walk)) {
      walk.leave('blocked', id);
      continue;
    }
    const refusal = await refuse(token);
    // Outside the service its cutoffs are unknown.
    const isUnknown = refusal === undefined && id === 'revocation' && rules.revocations?.isLoaded() === false;
    if (isUnknown) walk.leave('unknown', id);
    else walk.stage(id, refusal);
  }
}

/** Returns the steps of a policy. For alternatives: the steps of the part that holds, or else of the first. */
async function walkPolicy({ made }: CheckedPolicy, facts: PolicyFacts, verified: boolean): Promise<readonly Step[]> {
  if (made.of === 'stage') {
    const { id, refusal, received } = made;
    const verdict = refusal === undefined ? 'pass' : 'fail';
    return [{ id, verdict, reason: refusal?.reason, refusal, comparison: { received } }];
  }
  if (made.of === 'checks') {
    const walk = openWalk();
    walk.checks(made.checks, facts);
    // A schema is the caller's own code: it gets only claims that a trusted issuer has signed.
    const { readClaims } = made;
    if (readClaims !== undefined && verified) {
      walk.stage('claims_schema', await settle(() => readClaims(facts.token.claims)));
    }
    return walk.steps;
  }
  const parts: (readonly Step[])[] = [];
  for (const part of made.parts) parts.push(await walkPolicy(part, facts, verified));
  if (made.of === 'all') return parts.flat();
  const holding = parts.find((steps) => steps.every(({ verdict }) => verdict === 'pass'));
  return holding ?? parts[0] ?? [];
}
