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

/** A stream as a receiver has created it. */
export interface TransmitterStream {
  readonly stream_id: string;
  readonly iss: string;
  readonly aud: string;
  delivery: { method: string; endpoint_url: string; authorization_header?: string };
  events_requested: readonly string[];
  description?: string;
  min_verification_interval?: number;
}

/** Behaviour of the transmitter; a test changes it at any time. */
export interface TransmitterBehaviour {
  /** Responds to every request with this status. */
  status?: number;
  /** Sends a verification event for each request. */
  verifies: boolean;
  hasStatus: boolean;
  hasVerification: boolean;
  /** Allows one stream, and responds with 409 to another. */
  oneStream: boolean;
  streamStatus: 'enabled' | 'paused' | 'disabled';
  /** Milliseconds that a poll waits for events. */
  pollWait: number;
  /** Value of `moreAvailable`. */
  moreAvailable?: boolean;
  /** Sends events again, acknowledged or not. */
  repeats?: boolean;
  metadata: Readonly<Record<string, unknown>>;
  minVerification?: number;
  /** `iss` of streams, if it is another than the transmitter. */
  streamIssuer?: string;
  /** The only access token that is accepted; others get 401. The token endpoint issues it. */
  accessToken?: string;
}

/** One response of a receiver to a pushed event. */
export interface PushResult {
  readonly status: number;
  readonly body: string;
}

/**
 * A transmitter of the Shared Signals Framework 1.0, written after the specification: no real one can be installed from a
 * registry. Like Keycloak it has `default_subjects: NONE`, and its events name a complex subject of user and session.
 */
export interface TestTransmitter {
  readonly url: string;
  readonly ca: string;
  readonly caFile: string;
  readonly behaviour: TransmitterBehaviour;
  readonly streams: readonly TransmitterStream[];
  /** Requests so far, as `METHOD path`. */
  readonly requests: readonly string[];
  /** Values of `Authorization` so far. */
  readonly authorizations: readonly (string | undefined)[];
  /** Largest number of polls at the same time so far. */
  readonly mostPolls: number;
  /** Milliseconds since the epoch at which each poll arrived. */
  readonly polls: readonly number[];
  /** Acknowledged and refused events of polls. */
  readonly acknowledged: readonly string[];
  readonly refused: Readonly<Record<string, unknown>>;
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
  push(stream: TransmitterStream, token: string, headers?: Readonly<Record<string, string>>): Promise<PushResult>;
  /** Holds an event for the next poll; returns its `jti`. */
  hold(token: string, jti?: string): string;
  /** Deletes all streams, as an administrator does. */
  deleteStreams(): void;
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
  const streams: TransmitterStream[] = [];
  const requests: string[] = [];
  const authorizations: (string | undefined)[] = [];
  const acknowledged: string[] = [];
  const refused: Record<string, unknown> = {};
  const held = new Map<string, string>();
  const waiting = new Set<() => void>();
  const polls: number[] = [];
  let mostPolls = 0;
  const behaviour: TransmitterBehaviour = {
    ...{ verifies: true, hasStatus: true, hasVerification: true, oneStream: false },
    ...{ streamStatus: 'enabled', pollWait: 200, metadata: {} },
  };
  const server = createServer({ cert: certificates.cert, key: certificates.key }, (request, response) => {
    void respond(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
  const url = `${origin}${path}`;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(String(request.url), origin);
    requests.push(`${request.method} ${pathname}`);
    authorizations.push(request.headers.authorization);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const send = (status: number, value?: unknown): void => {
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(value === undefined ? '' : JSON.stringify(value));
    };
    if (behaviour.status !== undefined) return send(behaviour.status);
    const { accessToken } = behaviour;
    if (pathname === '/token')
      return send(200, { access_token: accessToken ?? 'issued', token_type: 'Bearer', expires_in: 3600 });
    const isPublic = pathname === '/jwks' || pathname.startsWith('/.well-known/');
    if (accessToken !== undefined && !isPublic && request.headers.authorization !== `Bearer ${accessToken}`)
      return send(401);
    const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
    const find = (id: unknown): TransmitterStream | undefined => streams.find(({ stream_id: each }) => each === id);
    if (pathname === `/.well-known/ssf-configuration${path}`) {
      return send(200, {
        ...{ spec_version: '1_0', issuer: url, jwks_uri: `${origin}/jwks`, default_subjects: 'NONE' },
        delivery_methods_supported: ['urn:ietf:rfc:8935', 'urn:ietf:rfc:8936'],
        configuration_endpoint: `${origin}/streams`,
        ...(behaviour.hasStatus && { status_endpoint: `${origin}/status` }),
        ...(behaviour.hasVerification && { verification_endpoint: `${origin}/verify` }),
        ...behaviour.metadata,
      });
    }
    if (pathname === '/jwks')
      return send(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }] });
    if (pathname === '/streams' && request.method === 'GET') return send(200, streams);
    if (pathname === '/streams' && request.method === 'POST') {
      if (behaviour.oneStream && streams.length > 0) return send(409);
      const id = randomUUID();
      const stream = {
        ...(body as unknown as TransmitterStream),
        ...{ stream_id: id, iss: behaviour.streamIssuer ?? url, aud: `https://receiver.example/${id}` },
        ...(behaviour.minVerification !== undefined && { min_verification_interval: behaviour.minVerification }),
      };
      if (stream.delivery.method.endsWith('8936'))
        stream.delivery = { ...stream.delivery, endpoint_url: `${origin}/poll` };
      streams.push(stream);
      return send(201, stream);
    }
    if (pathname === '/streams' && request.method === 'PATCH') {
      const stream = find(body['stream_id']);
      if (stream === undefined) return send(404);
      const before = stream.delivery;
      Object.assign(stream, body);
      if (stream.delivery.method.endsWith('8936'))
        stream.delivery = { ...before, ...stream.delivery, endpoint_url: `${origin}/poll` };
      return send(200, stream);
    }
    if (pathname === '/status' && find(searchParams.get('stream_id')) === undefined) return send(404);
    if (pathname === '/status')
      return send(200, { stream_id: searchParams.get('stream_id'), status: behaviour.streamStatus });
    if (pathname === '/verify') {
      const stream = find(body['stream_id']);
      if (stream === undefined) return send(404);
      send(204);
      if (!behaviour.verifies) return;
      const token = event(stream, eventTypes.verification, opaque(stream.stream_id), { state: body['state'] });
      if (stream.delivery.method.endsWith('8936')) hold(token);
      else await push(stream, token);
      return;
    }
    if (pathname === '/poll') {
      polls.push(Date.now());
      for (const jti of (body['ack'] ?? []) as string[]) {
        acknowledged.push(jti);
        if (behaviour.repeats !== true) held.delete(jti);
      }
      for (const [jti, error] of Object.entries((body['setErrs'] ?? {}) as object)) {
        refused[jti] = error;
        if (behaviour.repeats !== true) held.delete(jti);
      }
      if (held.size === 0) {
        await new Promise<void>((settle) => {
          const resolve = (): void => {
            waiting.delete(resolve);
            settle();
          };
          waiting.add(resolve);
          mostPolls = Math.max(mostPolls, waiting.size);
          setTimeout(resolve, behaviour.pollWait);
        });
      }
      const { moreAvailable } = behaviour;
      return send(200, { sets: Object.fromEntries(held), ...(moreAvailable !== undefined && { moreAvailable }) });
    }
    send(404);
  }

  const opaque = (id: string) => ({ format: 'opaque', id });
  const sign: TestTransmitter['sign'] = (stream, claims, header = {}) => {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: url, aud: stream.aud, iat: now, jti: randomUUID(), ...claims };
    return signCompact({ alg: 'RS256', kid, typ: 'secevent+jwt', ...header }, all, { alg: 'RS256', privateKey });
  };
  const event: TestTransmitter['event'] = (stream, type, subject, detail = {}, claims = {}) =>
    sign(stream, { sub_id: subject, events: { [type]: detail }, ...claims });
  const push: TestTransmitter['push'] = async (stream, token, headers = {}) => {
    const { endpoint_url: endpoint, authorization_header: authorization } = stream.delivery;
    // Receivers of tests are behind no TLS.
    const response = await fetch(endpoint.replace(/^https:/, 'http:'), {
      method: 'POST',
      headers: { 'content-type': 'application/secevent+jwt', ...(authorization && { authorization }), ...headers },
      body: token,
    });
    return { status: response.status, body: await response.text() };
  };
  const hold: TestTransmitter['hold'] = (
    token,
    jti = String(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).jti),
  ) => {
    held.set(jti, token);
    for (const resolve of waiting) resolve();
    waiting.clear();
    return jti;
  };

  return {
    ...{ url, ca: certificates.ca, caFile, behaviour, streams, requests, authorizations, acknowledged, refused },
    ...{ polls, sign, event, push, hold },
    deleteStreams: () => void streams.splice(0),
    get mostPolls() {
      return mostPolls;
    },
    async stop() {
      for (const resolve of waiting) resolve();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
