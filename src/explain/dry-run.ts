import { AccessError } from '../failures.ts';
import { type Credentials, readCredentials } from '../http/credentials.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import { findAlgorithm } from '../jose/algorithms.ts';
import type { JsonObject } from '../jose/json.ts';
import { type Jws, verifyJws } from '../jose/jws.ts';
import type { KeptRules } from '../resource-server/kept-rules.ts';
import {
  type AccessTokenRules,
  findIssuer,
  findKey,
  headerChecks,
  type IssuerRules,
  issuerChecks,
  readClaims,
  readToken,
} from '../token/access-token.ts';
import { type Claims, claimChecks } from '../token/claims.ts';
import { readConfirmation } from '../token/confirmation.ts';
import { profileChecks } from '../token/profile.ts';
import type { CheckedPolicy, JudgedToken } from '../token/token-policy.ts';
import { judgeBinding, judgeProof } from './dry-run-proof.ts';
import type { DryRunOptions, Sight } from './sight.ts';
import { startWalk, type Walk } from './walk.ts';

/** The steps of a dry run, and what was seen. */
export interface DryRun {
  readonly walk: Walk;
  readonly sight: Sight;
}

/**
 * Makes every check of the judgement, in its order, with its own functions and records. Nothing that the judgement keeps is
 * changed: no cache is asked, no key is fetched, no proof is used up.
 */
export async function runDry(options: DryRunOptions): Promise<DryRun> {
  const { rules, request, connection, policy, now } = options;
  const walk = startWalk();
  const url = walk.take('url', 'bad_host_header', () => rules.readExternalUrl(request, connection));
  const credentials = walk.take('credentials', 'missing_credentials', () =>
    readCredentials(request.headers, rules.mode),
  );
  const trusted = url === undefined ? undefined : await findTrusted(walk, options, url);
  const all = [...(trusted?.issuers.values() ?? [])];
  if (credentials !== undefined && rules.introspection?.handles(credentials.token) === true) {
    walk.leave('introspection', 'unknown', 'only the authorization server knows this token: a dry run does not ask it');
    const sight = { header: undefined, claims: undefined, issuer: undefined, proof: undefined, isVerified: false };
    return { walk, sight: { url, credentials, trusted: all, ...sight } };
  }
  const jws = walk.take('token', 'malformed_token', () => credentials && readToken(credentials.token));
  const claims = walk.take('claims', 'malformed_claims', () => jws && readClaims(jws));
  const { issuer, verified } = judgeToken(walk, { jws, claims, trusted, options });
  const confirmation = walk.take(
    'confirmation',
    'malformed_cnf',
    () => claims && readConfirmation(claims, trusted?.certificates ?? 'off'),
  );
  await judgeDenyList(walk, options, claims, jws?.header['kid']);
  judgeBinding(walk, options, { credentials, confirmation });
  const proof = judgeProof(walk, options, { url, credentials, confirmation });
  const isSound = verified === true && claimsHold(walk);
  await judgePolicies(walk, { claims, issuer, policy, now, isSound });
  walk.leave('replay', ...describeReplay(credentials, rules));
  const sight = {
    url,
    credentials,
    header: jws?.header,
    claims,
    issuer,
    trusted: all,
    proof,
    isVerified: verified === true,
  };
  return { walk, sight };
}

/** A resolver of the caller's own may refuse the request. */
async function findTrusted(
  walk: Walk,
  { rules, request }: DryRunOptions,
  url: ExternalUrl,
): Promise<AccessTokenRules | undefined> {
  try {
    return await rules.issuers.find(request, url);
  } catch (error) {
    if (!(error instanceof AccessError)) throw error;
    walk.take('issuers', error.reason, () => error);
    return undefined;
  }
}

interface TokenParts {
  readonly jws: Jws | undefined;
  readonly claims: JsonObject | undefined;
  readonly trusted: AccessTokenRules | undefined;
  readonly options: DryRunOptions;
}

function judgeToken(walk: Walk, { jws, claims, trusted, options }: TokenParts) {
  const { now, keys } = options;
  walk.make(headerChecks, jws && trusted && { header: jws.header, algorithms: trusted.algorithms });
  const issuer = walk.take('issuer', 'invalid_issuer', () => claims && trusted && findIssuer(claims, trusted.issuers));
  walk.make(issuerChecks, jws && issuer && { header: jws.header, issuer });
  const { kid, alg } = jws?.header ?? {};
  const found = walk.take('key', 'unknown_kid', () => {
    if (issuer === undefined || typeof kid !== 'string' || typeof alg !== 'string') return undefined;
    return findKey(keys === undefined ? issuer : { ...issuer, keys }, kid, alg);
  });
  const verified = walk.take('signature', 'invalid_signature', () => {
    const algorithm = findAlgorithm(alg);
    if (jws === undefined || found === undefined || algorithm === undefined) return undefined;
    return verifyJws(jws, algorithm, found.key) || new AccessError('invalid_signature');
  });
  // A token of nobody is compared with the rules of the only issuer: a person wants to know all that is wrong.
  const [only, ...others] = trusted?.issuers.values() ?? [];
  const compared = issuer ?? (others.length === 0 ? only : undefined);
  walk.make(claimChecks, claims && compared && { claims, rules: compared, now });
  if (compared?.profile !== undefined) walk.make(profileChecks, claims && { claims });
  return { issuer: compared, verified };
}

async function judgeDenyList(walk: Walk, { rules }: DryRunOptions, claims: JsonObject | undefined, kid: unknown) {
  const { denyList } = rules;
  if (denyList === undefined) return;
  const name = typeof kid === 'string' ? kid : undefined;
  // The list looks at texts only, so claims that are not verified do no harm.
  const denied = claims === undefined ? undefined : await denyList.denies(claims as Claims, name);
  walk.take('deny_list', 'revoked_token', () =>
    denied === undefined ? undefined : denied ? new AccessError('revoked_token') : 'not listed',
  );
}

/** Whether every check of the token has passed so far. */
function claimsHold({ steps }: Walk): boolean {
  return steps.every(({ verdict }) => verdict !== 'fail' && verdict !== 'blocked');
}

interface PolicyFacts {
  readonly claims: JsonObject | undefined;
  readonly issuer: IssuerRules | undefined;
  readonly policy: CheckedPolicy;
  readonly now: number;
  readonly isSound: boolean;
}

async function judgePolicies(walk: Walk, { claims, issuer, policy, now, isSound }: PolicyFacts): Promise<void> {
  const scope = claims?.['scope'];
  const isReadable = claims !== undefined && issuer !== undefined && (scope === undefined || typeof scope === 'string');
  for (const [id, each] of [['issuer_policy', issuer?.policy] as const, ['policy', policy] as const]) {
    if (each === undefined) continue;
    // A schema is the caller's own code: it sees verified claims only, as in the judgement.
    const isAllowed = isReadable && (isSound || !each.hasSchema);
    const token: JudgedToken | undefined = isAllowed
      ? { claims: claims as Claims, scopes: splitScope(scope), verifiedBy: { issuer } } // a policy compares, whatever they are
      : undefined;
    const verdict = token === undefined ? undefined : ((await each.judge(token, now)) ?? 'met');
    walk.take(id, 'insufficient_scope', () => verdict);
  }
}

/** As for the judgement, which keeps each text that it has split. */
function splitScope(scope: string | undefined): ReadonlySet<string> {
  return new Set(scope === undefined || scope === '' ? [] : scope.split(' '));
}

function describeReplay(
  credentials: Credentials | undefined,
  { replay }: KeptRules,
): readonly ['skipped' | 'unknown', string] {
  if (credentials?.proof === undefined) return ['skipped', 'no proof was sent'];
  if (replay === 'off') return ['skipped', 'the replay store is off'];
  return ['unknown', 'not tried: explain never uses up a proof'];
}
