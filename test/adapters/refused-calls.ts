import { X509Certificate } from 'node:crypto';
import type { Reason } from '../../src/core/failures.ts';
import { makeCertificate } from '../../src/testing/certificate.ts';
import { type ProofFlaw, proofFlaws, type TokenFlaw, tokenFlaws } from '../../src/testing/index.ts';
import { client, issuer } from './issuer.ts';
import { now, type ServerName } from './scene.ts';

/** A request that is refused. */
export interface RefusedCall {
  readonly reason: Reason;
  /** Which one, where a reason has several. */
  readonly how?: string;
  readonly server?: ServerName;
  /** The route; default: that of the server. */
  readonly path?: string;
  /** Names and values in turn, as sent. Made for the URL that is called. */
  readonly headers: (url: string) => readonly string[];
  /** Sent once before, and let in. */
  readonly repeated?: 'after one that is let in';
}

const otherCertificate = new X509Certificate((await makeCertificate()).certificate).raw.toString('base64');
const scope = 'read:messages';
const bearer = (token: string): readonly string[] => ['Authorization', `Bearer ${token}`];
const good = (): readonly string[] => bearer(issuer.token({ scope }));
type Call = Omit<Parameters<typeof client.headers>[0], 'url'>;
const dpop = (url: string, call: Call = {}): readonly string[] => {
  const { authorization, dpop: proof } = client.headers({ url, scope, ...call });
  return ['Authorization', authorization, 'DPoP', proof];
};

const byToken = (reason: TokenFlaw): RefusedCall => ({
  reason,
  headers: () => bearer(issuer.flawed(reason, reason === 'malformed_scope' ? {} : { scope })),
});
const byProof = (reason: ProofFlaw): RefusedCall => ({ reason, headers: (url) => dpop(url, { flaw: reason }) });

/** A call for every reason there is. */
export const refusedCalls: readonly RefusedCall[] = [
  { reason: 'missing_credentials', headers: () => [] },
  { reason: 'missing_credentials', how: 'with a body of its own form', server: 'ownBodies', headers: () => [] },
  { reason: 'unsupported_scheme', headers: () => ['Authorization', 'Basic YTpi'] },
  { reason: 'bearer_not_accepted', server: 'dpopRequired', headers: good },
  { reason: 'dpop_not_accepted', server: 'dpopOff', headers: (url) => dpop(url) },
  { reason: 'multiple_authorization_headers', headers: () => [...good(), ...good()] },
  { reason: 'malformed_client_id', server: 'ofProfile', headers: () => bearer(issuer.token({ scope, client_id: 7 })) },
  {
    reason: 'malformed_jti',
    server: 'ofProfile',
    headers: () => bearer(issuer.token({ scope, client_id: 'client', jti: 7 })),
  },
  {
    reason: 'missing_client_certificate',
    server: 'withCertificates',
    headers: () => bearer(issuer.token({ scope, cnf: { 'x5t#S256': 'A'.repeat(43) } })),
  },
  {
    reason: 'client_certificate_mismatch',
    server: 'withCertificates',
    headers: () => [
      ...bearer(issuer.token({ scope, cnf: { 'x5t#S256': 'A'.repeat(43) } })),
      ...['Client-Cert', `:${otherCertificate}:`],
    ],
  },
  { reason: 'revoked_token', server: 'withCheck', headers: () => bearer(issuer.token({ scope, sub: 'mallory' })) },
  { reason: 'revocation_unknown', server: 'withFailingCheck', headers: good },
  { reason: 'audit_unavailable', server: 'withFullAudit', headers: good },
  { reason: 'token_lifetime_too_long', server: 'withRevocations', headers: good },
  { reason: 'unaccepted_client', server: 'ofClients', headers: good },
  { reason: 'inactive_token', server: 'asking', headers: () => bearer('opaque') },
  { reason: 'introspection_unavailable', server: 'askingInVain', headers: () => bearer('opaque') },
  { reason: 'missing_dpop_proof', headers: (url) => dpop(url).slice(0, 2) },
  { reason: 'bearer_with_dpop_proof', headers: (url) => [...good(), ...dpop(url).slice(2)] },
  // A URL with this host is valid for the platform, so that every runtime passes it on.
  { reason: 'bad_host_header', headers: () => ['Host', 'one,two.example', ...good()] },
  { reason: 'bad_forwarded_header', server: 'behindProxy', headers: () => ['X-Forwarded-Proto', 'gopher', ...good()] },
  ...tokenFlaws.map(byToken),
  { reason: 'unbound_token_as_dpop', headers: (url) => dpop(url, { token: issuer.token({ scope }) }) },
  ...proofFlaws.map(byProof),
  { reason: 'missing_proof_nonce', server: 'withNonces', headers: (url) => dpop(url) },
  { reason: 'invalid_proof_nonce', server: 'withNonces', headers: (url) => dpop(url, { nonce: 'stale' }) },
  { reason: 'proof_before_start', server: 'justStarted', headers: (url) => dpop(url) },
  { reason: 'proof_replayed', headers: (url) => dpop(url), repeated: 'after one that is let in' },
  { reason: 'insufficient_scope', headers: () => bearer(issuer.token({ scope: 'write:messages' })) },
  { reason: 'no_accepted_scope', path: '/anyScope', headers: () => bearer(issuer.token({ scope: 'write:messages' })) },
  {
    reason: 'missing_permission',
    path: '/permissions',
    headers: () => bearer(issuer.token({ permissions: ['messages:write'] })),
  },
  { reason: 'actor_required', path: '/actor', headers: good },
  {
    reason: 'actor_not_allowed',
    path: '/actor',
    headers: () => bearer(issuer.token({ scope: 'read:messages', act: { sub: 'agent-2' } })),
  },
  { reason: 'unaccepted_claims', path: '/claims', headers: good },
  { reason: 'unaccepted_acr', path: '/acr', headers: () => bearer(issuer.token({ acr: 'urn:example:bronze' })) },
  { reason: 'missing_auth_time', path: '/maxAge', headers: good },
  {
    reason: 'authentication_too_old',
    path: '/maxAge',
    headers: () => bearer(issuer.token({ auth_time: now() - 3600 })),
  },
  { reason: 'keys_unavailable', server: 'withoutKeys', headers: good },
  { reason: 'unknown_kid', how: 'after keys were fetched', server: 'slow', headers: byToken('unknown_kid').headers },
  { reason: 'replay_store_unavailable', server: 'withoutReplay', headers: (url) => dpop(url) },
  { reason: 'replay_store_full', server: 'withFullReplay', headers: (url) => dpop(url) },
  { reason: 'unexpected', server: 'defective', headers: (url) => dpop(url) },
];

const few: readonly Reason[] = ['missing_credentials', 'insufficient_scope', 'keys_unavailable', 'missing_proof_nonce'];

/** 401, 403, 503, a nonce, and a body of the caller: for frameworks and runtimes that send what one object describes. */
export const fewRefusedCalls = refusedCalls.filter(({ reason }) => few.includes(reason));
