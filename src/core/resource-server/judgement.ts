import { hash } from 'node:crypto';
import { refuseByFirst } from '../checks.ts';
import type { VerifiedProof } from '../dpop/proof.ts';
import { askWitness } from '../dpop/replay.ts';
import { AccessError } from '../failures.ts';
import { type Credentials, readCredentials } from '../http/credentials.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { Introspection } from '../introspection/introspection.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import { Refused } from '../refused.ts';
import {
  type AccessTokenRules,
  missingKeys,
  readUnverifiedIssuer,
  type ValidToken,
  verifyAccessToken,
} from '../token/access-token.ts';
import { bindingChecks, type Confirmation, certificateChecks } from '../token/claims.ts';
import { verifyIntrospectedToken } from '../token/introspected-token.ts';
import type { Walk } from '../walk.ts';
import { type Access, grantAccess, type Recheck, refuseExpired } from './access.ts';
import type { JudgementRules } from './server-rules.ts';

/** Returns the access that a request gets, or its refusal. Rejects for defects only. */
export type Judge = (
  request: ResourceRequest,
  policy: Policy<unknown> | undefined,
  connection: Connection | undefined,
) => Promise<Access<unknown> | AccessError>;

type Verified = ValidToken | AccessError;

export interface ReadRequest {
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
  readonly url: ExternalUrl;
  readonly credentials: Credentials;
  /** The token, or the JWT inside an encrypted one. */
  readonly text: string;
  /** Steps of a dry run. */
  readonly walk?: Walk;
}

const anyToken = checkPolicy({});

/** Seconds between two introspections for one request or open stream if no response is cached. */
const leastRecheck = 1;

/** Creates the authorization function of a resource server: its checks, from top to bottom. It awaits only promises. */
export function createJudge(rules: JudgementRules): Judge {
  const { decryption, introspection, withdrawal, replay, nonces, now } = rules;
  const { verifyByIntrospection, verifyBinding } = openStages(rules);

  return async (request, policy, connection) => {
    try {
      const routePolicy = policy === undefined ? anyToken : checkPolicy(policy);
      // Host and forwarded headers must always match their grammar, used or not (RFC 9112 §3.2).
      const url = rules.readExternalUrl(request, connection);
      if (url instanceof Refused) return url;
      const credentials = readCredentials(request.headers, rules.mode);
      if (credentials instanceof Refused) return credentials;
      const opening = decryption === undefined ? credentials.token : decryption.decrypt(credentials.token);
      const text = opening instanceof Promise ? await opening : opening;
      if (text instanceof Refused) return text;
      const call: ReadRequest = { request, connection, url, credentials, text };

      const found = rules.issuers.fixed ?? rules.issuers.find(request, url, text);
      const trusted = found instanceof Promise ? await found : found;
      if (trusted instanceof Refused) return trusted;
      const asked = introspection && findIntrospection(introspection, text, trusted);
      const verifying = asked === undefined ? verifyByKeys(trusted, call) : verifyByIntrospection(trusted, call, asked);
      const token = verifying instanceof Promise ? await verifying : verifying;
      if ('reason' in token) return token;
      const evidence = { claims: token.claims, kid: token.verifiedBy.kid, scopes: token.scopes };

      const withdrawing = withdraw(token);
      const withdrawn = withdrawing instanceof Promise ? await withdrawing : withdrawing;
      if (withdrawn !== undefined) return withdrawn.attest(evidence);

      const seconds = now();
      const proof = verifyBinding(token, call, seconds);
      if (proof instanceof Refused) return proof.attest(evidence);

      const { conditionCall } = request;
      const facts = { token, now: seconds, jwt: asked === undefined ? text : undefined, conditionCall };
      // The issuer's policy comes first. Its schema only checks: handlers get the claims of the route's schema.
      const judging = token.verifiedBy.issuer.policy?.judge(facts);
      const general = judging instanceof Promise ? await judging : judging;
      if (general instanceof Refused) return general.attest(evidence);
      const routing = routePolicy.judge(facts);
      const given = routing instanceof Promise ? await routing : routing;
      if (given instanceof Refused) return given.attest(evidence);
      if (routing instanceof Promise) {
        // The policy may have read the body of the client: the token can have ended since.
        const isDue = now() - seconds >= leastRecheck || rules.revocations?.doubtOf(token.claims) !== undefined;
        const later = asked !== undefined && isDue ? await verifyByIntrospection(trusted, call, asked) : token;
        if ('reason' in later) return later;
        const late = (await withdraw(later)) ?? refuseExpired(later, now());
        if (late !== undefined) return late.attest(evidence);
      }
      const again = asked && recheckBy(trusted, call, asked);
      const { revocations } = rules;
      const access = grantAccess({ token, credentials, revocations, again, now }, given, proof?.nonce);

      // Last, so that only a proof that is otherwise accepted is recorded.
      if (proof === undefined || replay === 'off' || request.proofWitnessed === true) return access;
      const witnessing = askWitness(replay, proof, nonces.reader(proof.sentNonce));
      const first = witnessing instanceof Promise ? await witnessing : witnessing;
      if (first instanceof AccessError) return nonces.refuse(first);
      return first === true ? access : new Refused('proof_replayed').attest(evidence);
    } catch (error) {
      // A resolver, a store or a schema of the application may throw a refusal.
      if (error instanceof AccessError) return error;
      throw error;
    }
  };

  /** Refuses a withdrawn token, by the first step that does. */
  function withdraw(token: ValidToken, from = 0): Refused | undefined | Promise<Refused | undefined> {
    for (let i = from; i < withdrawal.length; i++) {
      const refused = withdrawal[i]?.refuse(token);
      if (refused instanceof Promise) return refused.then((found) => found ?? withdraw(token, i + 1));
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  /** Verifies by the issuer's keys. If the token's key is not loaded, they are fetched. */
  function verifyByKeys(trusted: AccessTokenRules, call: ReadRequest): Verified | Promise<Verified> {
    const verified = verifyByCachedKeys(trusted, call.text);
    if (!(verified instanceof Refused) || !missingKeys.has(verified.reason)) return verified;
    const verify = (): Verified => verifyByCachedKeys(trusted, call.text);
    return rules.verifyAgain(verified, trusted, { ...call, verify }) ?? verified;
  }

  function verifyByCachedKeys(trusted: AccessTokenRules, text: string): ValidToken | Refused {
    const seconds = now();
    const known = rules.cache?.find(text, trusted.issuers, seconds);
    const token = known ?? verifyAccessToken(text, trusted, seconds);
    if (token instanceof Refused) return token;
    rules.issuers.confirm?.(token.verifiedBy.issuer);
    if (known === undefined) rules.cache?.remember(text, token);
    return token;
  }

  function recheckBy(trusted: AccessTokenRules, call: ReadRequest, asked: Introspection): Recheck {
    const seconds = Math.max(leastRecheck, asked.maxSeconds);
    return { seconds, verify: () => verifyByIntrospection(trusted, call, asked) };
  }
}

/** The stages that a dry run also makes. */
export function openStages(rules: JudgementRules) {
  return { verifyByIntrospection, verifyBinding };

  /** Verifies by introspection, if its issuer is trusted for this request. */
  async function verifyByIntrospection(
    trusted: AccessTokenRules,
    { request, connection, credentials: { token: text } }: ReadRequest,
    asked: Introspection,
  ): Promise<Verified> {
    const { issuer, audience } = asked;
    const token = trusted.issuers.get(issuer) ?? rules.opaqueRules;
    if (token === undefined) return new Refused('invalid_issuer');
    const verify = async (since?: number): Promise<Verified> => {
      const client = rules.readClientAddress(request, connection);
      const answer = await asked.introspect(text, hashToken(text), client, since);
      if (answer instanceof AccessError) return answer;
      return verifyIntrospectedToken(
        answer,
        { token, issuer, audience, certificates: rules.certificates },
        rules.now(),
      );
    };
    const valid = await verify();
    if ('reason' in valid) return valid;
    // Without iat, only a response that is newer than the cutoff decides about the token.
    const since = rules.revocations?.doubtOf(valid.claims);
    return since === undefined ? valid : verify(since);
  }

  function verifyBinding(
    { jkt, certificate }: Confirmation,
    { request, connection, url, credentials: { scheme, token, proof }, walk }: ReadRequest,
    now: number,
  ): VerifiedProof | Refused | undefined {
    if (certificate !== undefined) {
      const presented = rules.readCertificate?.(request, connection);
      walk?.stage('client_certificate', presented);
      if (presented instanceof Refused) return presented;
      const foreign = refuseByFirst(certificateChecks, { certificate, presented }, walk);
      if (foreign !== undefined) return foreign;
    } else walk?.leave('skipped', 'certificate_presented', 'certificate');
    if (jkt === undefined && scheme === 'Bearer' && walk === undefined) return undefined;
    const refusal = refuseByFirst(bindingChecks, { jkt, scheme }, walk);
    if (refusal !== undefined || jkt === undefined || proof === undefined) return refusal;
    return rules.verifyProof({ proof, method: request.method, url, jkt, ath: hashToken(token), now, walk });
  }
}

/** Returns the introspection if it is for this token: never for a JWT of another trusted issuer, whose keys verify it. */
export function findIntrospection(
  introspection: Introspection,
  token: string,
  { headers, issuers }: AccessTokenRules,
): Introspection | undefined {
  if (!introspection.handles(token)) return undefined;
  const iss = readUnverifiedIssuer(token, headers);
  return iss !== undefined && iss !== introspection.issuer && issuers.has(iss) ? undefined : introspection;
}

/** Returns the base64url SHA-256 of an access token, which `ath` of a proof must equal (RFC 9449 §4.2). */
export function hashToken(token: string): string {
  return hash('sha256', token, 'base64url');
}
