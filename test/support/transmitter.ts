import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findAlgorithm, signCompact } from '../../src/core/jose/sign.ts';
import { takeRsaKeys } from './rsa-keys.ts';
import { createTestCertificates } from './tls.ts';

/** A stream as an administrator has created it. */
export interface TransmitterStream {
  readonly stream_id: string;
  readonly aud: string;
}

/** Behaviour of the transmitter; a test changes it at any time. */
export interface TransmitterBehaviour {
  /** Responds to every request with this status. */
  status?: number;
  metadata: Readonly<Record<string, unknown>>;
}

/**
 * A transmitter of the Shared Signals Framework 1.0, written after the specification: no real one can be installed from a
 * registry.
 */
export interface TestTransmitter {
  readonly url: string;
  readonly ca: string;
  readonly caFile: string;
  readonly behaviour: TransmitterBehaviour;
  readonly stream: TransmitterStream;
  /** Requests so far, as `METHOD path`. */
  readonly requests: readonly string[];
  /** Signs a security event token for a stream; members that are `undefined` are omitted. */
  sign(
    stream: TransmitterStream,
    claims: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
  ): string;
  /** Signs an event of one type. */
  event(
    stream: TransmitterStream,
    type: string,
    subject: object,
    event?: object,
    claims?: Readonly<Record<string, unknown>>,
  ): string;
  stop(): Promise<void>;
}

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
export async function startTransmitter(path = ''): Promise<TestTransmitter> {
  const certificates = await createTestCertificates();
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-transmitter-'));
  const caFile = join(folder, 'ca.pem');
  await writeFile(caFile, certificates.ca);
  const { privateKey, publicKey } = takeRsaKeys();
  const kid = 'transmitter-key';
  findAlgorithm('RS256');
  const requests: string[] = [];
  const behaviour: TransmitterBehaviour = { metadata: {} };
  const stream: TransmitterStream = { stream_id: randomUUID(), aud: 'https://receiver.example/' };
  const server = createServer({ cert: certificates.cert, key: certificates.key }, (request, response) => {
    respond(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
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

  const sign: TestTransmitter['sign'] = (stream, claims, header = {}) => {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: url, aud: stream.aud, iat: now, jti: randomUUID(), ...claims };
    return signCompact({ alg: 'RS256', kid, typ: 'secevent+jwt', ...header }, all, { alg: 'RS256', privateKey });
  };
  const event: TestTransmitter['event'] = (stream, type, subject, detail = {}, claims = {}) =>
    sign(stream, { sub_id: subject, events: { [type]: detail }, ...claims });
  return {
    ...{ url, ca: certificates.ca, caFile, behaviour, stream, requests, sign, event },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
