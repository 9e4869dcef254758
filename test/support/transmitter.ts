import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { signCompact } from '../../src/core/jose/sign.ts';
import { makeFolder } from '../../tools/shared/folder.js';
import { listen, stop } from '../../tools/shared/network.js';
import { takeRsaKeys } from './rsa-keys.ts';
import { createTestCertificates } from './tls.ts';

/** Behaviour of the transmitter; a test changes it at any time. */
export interface TransmitterBehaviour {
  /** Responds to every request with this status. */
  status?: number;
  metadata: Members;
}

/**
 * A transmitter of the Shared Signals Framework 1.0, written after the specification: no real one can be installed from a
 * registry.
 */
export type TestTransmitter = Awaited<ReturnType<typeof startTransmitter>>;

type Members = Readonly<Record<string, unknown>>;

const base = 'https://schemas.openid.net/secevent';
/** Event types by short name. */
export const eventTypes = {
  'session-revoked': `${base}/caep/event-type/session-revoked`,
  'credential-change': `${base}/caep/event-type/credential-change`,
  'token-claims-change': `${base}/caep/event-type/token-claims-change`,
  'assurance-level-change': `${base}/caep/event-type/assurance-level-change`,
  'device-compliance-change': `${base}/caep/event-type/device-compliance-change`,
  'session-established': `${base}/caep/event-type/session-established`,
  'session-presented': `${base}/caep/event-type/session-presented`,
  'risk-level-change': `${base}/caep/event-type/risk-level-change`,
  'account-disabled': `${base}/risc/event-type/account-disabled`,
  'account-enabled': `${base}/risc/event-type/account-enabled`,
  'account-purged': `${base}/risc/event-type/account-purged`,
  'credential-compromise': `${base}/risc/event-type/credential-compromise`,
  'sessions-revoked': `${base}/risc/event-type/sessions-revoked`,
  'account-credential-change-required': `${base}/risc/event-type/account-credential-change-required`,
  'identifier-changed': `${base}/risc/event-type/identifier-changed`,
  'identifier-recycled': `${base}/risc/event-type/identifier-recycled`,
  'opt-in': `${base}/risc/event-type/opt-in`,
  'opt-out-initiated': `${base}/risc/event-type/opt-out-initiated`,
  'opt-out-cancelled': `${base}/risc/event-type/opt-out-cancelled`,
  'opt-out-effective': `${base}/risc/event-type/opt-out-effective`,
  'recovery-activated': `${base}/risc/event-type/recovery-activated`,
  'recovery-information-changed': `${base}/risc/event-type/recovery-information-changed`,
  verification: `${base}/ssf/event-type/verification`,
  'stream-updated': `${base}/ssf/event-type/stream-updated`,
} as const;

/** Starts a transmitter over TLS on a free loopback port. `path` is the path of its issuer. */
export async function startTransmitter(path = '') {
  const certificates = await createTestCertificates();
  const folder = makeFolder('transmitter');
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, certificates.ca);
  const { privateKey, publicKey } = takeRsaKeys();
  const kid = 'transmitter-key';
  /** Requests so far, as `METHOD path`. */
  const requests: string[] = [];
  const behaviour: TransmitterBehaviour = { metadata: {} };
  /** A stream as an administrator has created it. */
  const stream = { stream_id: randomUUID(), aud: 'https://receiver.example/' };
  const server = createServer({ cert: certificates.cert, key: certificates.key }, respond);
  const origin = `https://localhost:${await listen(server)}`;
  const url = `${origin}${path}`;

  function respond(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(String(request.url), origin);
    requests.push(`${request.method} ${pathname}`);
    const respondWith = (status: number, value?: unknown): void => {
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(value === undefined ? '' : JSON.stringify(value));
    };
    if (behaviour.status !== undefined) respondWith(behaviour.status);
    else if (pathname === `/.well-known/ssf-configuration${path}`) {
      respondWith(200, {
        ...{ spec_version: '1_0', issuer: url, jwks_uri: `${origin}/jwks`, default_subjects: 'NONE' },
        delivery_methods_supported: ['urn:ietf:rfc:8935'],
        configuration_endpoint: `${origin}/streams`,
        ...behaviour.metadata,
      });
    } else if (pathname === '/jwks')
      respondWith(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }] });
    else respondWith(404);
  }

  /** Signs a security event token for a stream; members that are `undefined` are omitted. */
  const sign = ({ aud }: { readonly aud: string }, claims: Members, header: Members = {}): string => {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: url, aud, iat: now, jti: randomUUID(), ...claims };
    return signCompact({ alg: 'RS256', kid, typ: 'secevent+jwt', ...header }, all, { alg: 'RS256', privateKey });
  };
  type Event = readonly [to: typeof stream, type: string, subject: object, detail?: object, claims?: Members];
  /** Signs an event of one type. */
  const event = (...[to, type, subject, detail = {}, claims = {}]: Event): string =>
    sign(to, { sub_id: subject, events: { [type]: detail }, ...claims });
  return {
    ...{ url, ca: certificates.ca, caFile, behaviour, stream, requests, sign, event },
    async stop() {
      await stop(server);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
