/*
 * Cases of the receiver test plans of the OpenID Foundation (conformance suite, `openid-ssf-receiver-test-plan` and
 * `openid-ssf-receiver-caep-test-plan`), with the names of their modules. The suite itself cannot be installed from a registry.
 * Its modules also expect that the receiver deletes its stream, which this receiver never does.
 */
import { describe, expect, it } from 'vitest';
import { createTestIssuer } from '../../../../src/testing/index.ts';
import { until } from '../../../support/redis-store.ts';
import { eventTypes, type TransmitterStream } from '../../../support/transmitter.ts';
import { issuer, open, receive, session, start, user } from './open-stream.ts';

type Opened = Awaited<ReturnType<typeof open>>;
const deliveries = ['push', 'poll'] as const;
const aboutStream = ({ remote }: Opened) => ({ format: 'opaque', id: remote.stream_id });

/** Delivers a token. Returns whether the receiver acknowledged it, or the error code of its refusal. */
async function deliver(opened: Opened, token: string): Promise<string> {
  const { transmitter, remote, post } = opened;
  if (remote.delivery.method.endsWith('8935')) {
    const { status, body } = await post(token);
    return status === 202 ? 'acknowledged' : String((body as { readonly err: string }).err);
  }
  const jti = transmitter.hold(token);
  await until(() => transmitter.acknowledged.includes(jti) || Object.hasOwn(transmitter.refused, jti));
  if (transmitter.acknowledged.includes(jti)) return 'acknowledged';
  return (transmitter.refused[jti] as { readonly err: string }).err;
}

const silent: Parameters<typeof open>[0] = { prepare: ({ behaviour }) => (behaviour.verifies = false) };
/** The `state` of the verification that was requested last. */
async function requestedState({ transmitter, parts }: Opened): Promise<string> {
  await until(() => transmitter.requests.includes('POST /verify'));
  const state = [...parts.records()].filter(([, kind]) => kind === 'state').at(-1)?.[2];
  if (state === undefined) throw new Error('no state was requested');
  return state;
}

describe.each(deliveries)('%s delivery', (delivery) => {
  it('happypath, stream-verification: metadata, stream, verification, event', async () => {
    const opened = await open({ delivery, ...silent });
    const { transmitter, remote, parts, reasonOf } = opened;
    const state = await requestedState(opened);
    const verification = transmitter.event(remote, eventTypes.verification, aboutStream(opened), { state });
    expect(await deliver(opened, verification)).toBe('acknowledged');
    expect(parts.markOf('stream:idp', 'verified', '')).toBeGreaterThan(0);
    const order = ['GET /.well-known/ssf-configuration', 'GET /streams', 'POST /streams', 'POST /verify'];
    expect(transmitter.requests.filter((each) => order.includes(each)).slice(0, 4)).toEqual(order);
    expect(remote.delivery.method).toBe(delivery === 'push' ? 'urn:ietf:rfc:8935' : 'urn:ietf:rfc:8936');
    expect(await deliver(opened, transmitter.event(remote, eventTypes['account-disabled'], user))).toBe('acknowledged');
    expect(reasonOf()).toBe('revoked_token');
  });

  it('stream-status-update: the status of the stream is read at its endpoint, with its id', async () => {
    const { transmitter, stream } = await open({ delivery });
    await until(() => transmitter.requests.includes('GET /status'));
    expect(stream().state()).toBe('ok');
  });

  it('supported-events: each event of CAEP and RISC → acknowledged', async () => {
    const opened = await open({ delivery });
    const { transmitter, remote } = opened;
    const names = Object.keys(eventTypes).filter((name) => name !== 'verification' && name !== 'stream-updated');
    const seen: [string, string][] = [];
    for (const name of names) {
      const token = transmitter.event(remote, eventTypes[name as keyof typeof eventTypes], user);
      seen.push([name, await deliver(opened, token)]);
    }
    expect(seen).toEqual(names.map((name) => [name, 'acknowledged']));
  }, 30_000);

  it('unsolicited-stream-verification: no state → acknowledged', async () => {
    const opened = await open({ delivery, ...silent });
    const token = opened.transmitter.event(opened.remote, eventTypes.verification, aboutStream(opened));
    expect(await deliver(opened, token)).toBe('acknowledged');
    expect(opened.parts.markOf('stream:idp', 'verified', '')).toBeUndefined();
  });

  it('verification-wrong-state → refused, and the right one is still accepted', async () => {
    const opened = await open({ delivery, ...silent });
    const state = await requestedState(opened);
    const verification = (sent: string) =>
      opened.transmitter.event(opened.remote, eventTypes.verification, aboutStream(opened), { state: sent });
    expect(await deliver(opened, verification(`${state}x`))).toBe('invalid_request');
    expect(opened.parts.markOf('stream:idp', 'verified', '')).toBeUndefined();
    expect(await deliver(opened, verification(state))).toBe('acknowledged');
    expect(opened.parts.markOf('stream:idp', 'verified', '')).toBeGreaterThan(0);
  });

  it.each([
    ['another stream', { format: 'opaque', id: 'another' }],
    ['another format', { format: 'iss_sub', iss: issuer, sub: 'ann' }],
  ])('verification-wrong-subject: %s → refused', async (_title, subject) => {
    const opened = await open({ delivery, ...silent });
    const state = await requestedState(opened);
    const token = opened.transmitter.event(opened.remote, eventTypes.verification, subject, { state });
    expect(await deliver(opened, token)).toBe('invalid_request');
    expect(opened.parts.markOf('stream:idp', 'verified', '')).toBeUndefined();
  });

  it('stream-updated of another stream → refused, and the stream is not paused', async () => {
    const opened = await open({ delivery });
    const other = { format: 'opaque', id: 'another' };
    const token = opened.transmitter.event(opened.remote, eventTypes['stream-updated'], other, { status: 'paused' });
    expect(await deliver(opened, token)).toBe('invalid_request');
    expect(opened.stream().state()).toBe('ok');
  });

  it('verification-behind-queued-events: three events first → all acknowledged, and verified', async () => {
    const opened = await open({ delivery, ...silent });
    const { transmitter, remote, parts } = opened;
    const state = await requestedState(opened);
    const verification = transmitter.event(remote, eventTypes.verification, aboutStream(opened), { state });
    const events = ['ann', 'bob', 'eve'].map((sub) =>
      transmitter.event(remote, eventTypes['account-disabled'], { ...user, sub }),
    );
    const results: string[] = [];
    for (const token of [...events, verification]) results.push(await deliver(opened, token));
    expect(results).toEqual(Array(4).fill('acknowledged'));
    expect(parts.markOf('stream:idp', 'verified', '')).toBeGreaterThan(0);
  });

  it('redelivered-set: the same token again → acknowledged again, and one cutoff', async () => {
    const opened = await open({ delivery });
    const { transmitter, remote, revocations } = opened;
    const token = transmitter.event(remote, eventTypes['account-disabled'], user);
    expect(await deliver(opened, token)).toBe('acknowledged');
    const { cutoffs } = revocations.status();
    if (delivery === 'push') expect(await deliver(opened, token)).toBe('acknowledged');
    else {
      const jti = transmitter.hold(token);
      await until(() => transmitter.acknowledged.filter((each) => each === jti).length === 2);
    }
    expect(revocations.status().cutoffs).toBe(cutoffs);
  });

  it('invalid-set-rejection: signature, iss, aud, a key of no JWKS → refused with the code of each', async () => {
    const opened = await open({ delivery });
    const { transmitter, remote, reasonOf } = opened;
    const event = (claims = {}, header = {}) =>
      transmitter.sign(remote, { sub_id: user, events: { [eventTypes['account-disabled']]: {} }, ...claims }, header);
    const valid = event();
    const forged = createTestIssuer().token(
      {
        ...{ iss: transmitter.url, aud: remote.aud, jti: 'forged', sub_id: user, events: {} },
        ...{ client_id: undefined, sub: undefined, exp: undefined },
      },
      { typ: 'secevent+jwt', kid: 'unknown' },
    );
    const codes: string[] = [];
    for (const token of [
      `${valid.slice(0, -8)}AAAAAAAA`,
      event({ iss: `${transmitter.url}/other` }),
      event({ aud: 'https://other.example/' }),
      event({}, { kid: 'unknown' }),
      forged,
    ]) {
      codes.push(await deliver(opened, token));
    }
    expect(codes).toEqual(['invalid_key', 'invalid_issuer', 'invalid_audience', 'invalid_key', 'invalid_request']);
    expect(reasonOf()).toBeUndefined();
  });

  it('transmitter-initiated-status-change: paused, a held event, enabled → all acknowledged', async () => {
    const opened = await open({ delivery });
    const { transmitter, remote, stream, reasonOf } = opened;
    const update = (status: string) =>
      transmitter.event(remote, eventTypes['stream-updated'], aboutStream(opened), { status, reason: 'maintenance' });
    expect(await deliver(opened, update('paused'))).toBe('acknowledged');
    expect(stream().state()).toBe('paused');
    const held = transmitter.event(remote, eventTypes['account-disabled'], user);
    expect(await deliver(opened, update('enabled'))).toBe('acknowledged');
    expect(await deliver(opened, held)).toBe('acknowledged');
    expect([stream().state(), reasonOf()]).toEqual(['ok', 'revoked_token']);
  });

  it('removed-subject-event: an event about a subject that matches nothing → acknowledged', async () => {
    const opened = await open({ delivery });
    const token = opened.transmitter.event(opened.remote, eventTypes['session-revoked'], { ...user, sub: 'removed' });
    expect(await deliver(opened, token)).toBe('acknowledged');
  });

  it.each([
    ['email', { format: 'email', email: 'ann@example.com' }, undefined],
    ['iss_sub', user, 'revoked_token'],
    ['complex', { format: 'complex', user, session }, 'revoked_token'],
  ])(
    'caep-interop: session-revoked and credential-change, subject %s → acknowledged',
    async (_title, subject, reason) => {
      const opened = await open({ delivery, events: ['session-revoked', 'credential-change'] });
      const { transmitter, remote, reasonOf } = opened;
      const now = Math.floor(Date.now() / 1000);
      const details = {
        ...{ event_timestamp: now, initiating_entity: 'policy' },
        ...{ reason_admin: { en: 'Landspeed policy violation: C076E82F' }, reason_user: { en: 'Access was ended.' } },
      };
      const change = { ...details, credential_type: 'password', change_type: 'update' };
      expect([
        await deliver(opened, transmitter.event(remote, eventTypes['session-revoked'], subject, details)),
        await deliver(opened, transmitter.event(remote, eventTypes['credential-change'], subject, change)),
      ]).toEqual(['acknowledged', 'acknowledged']);
      expect(reasonOf({ iat: now })).toBe(reason);
    },
  );

  it('stream-issuer-mismatch: a stream of another iss → never verified, polled or updated', async () => {
    const transmitter = await start();
    transmitter.behaviour.streamIssuer = 'https://other.example';
    const { events, stream } = receive(transmitter, { delivery });
    await until(() => events.some(({ type }) => type === 'failed'));
    await until(() => transmitter.requests.filter((each) => each === 'GET /streams').length > 1);
    expect(stream().state()).toBe('connecting');
    const uses = ['POST /verify', 'POST /poll', 'GET /status', 'PATCH /streams'];
    expect(transmitter.requests.filter((each) => uses.includes(each))).toEqual([]);
  });

  it('access-token-expiry: 401 → a new token, and the stream goes on', async () => {
    const transmitter = await start();
    const credentials = { tokenEndpoint: `${new URL(transmitter.url).origin}/token`, clientId: 'a', clientSecret: 'b' };
    Object.assign(transmitter.behaviour, { accessToken: 'first', verifies: false });
    const { events } = receive(transmitter, { delivery, credentials, verifyEvery: 1 });
    await until(() => events.some(({ type }) => type === 'opened'));
    transmitter.behaviour.accessToken = 'second';
    await until(() => transmitter.authorizations.includes('Bearer second'));
    const verified = () => transmitter.requests.filter((each) => each === 'POST /verify').length;
    const before = verified();
    await until(() => verified() > before);
    expect(transmitter.streams.length).toBe(1);
  });

  it('a stream that was deleted at the transmitter → created again', async () => {
    const { transmitter } = await open({ delivery, verifyEvery: 1 });
    transmitter.deleteStreams();
    await until(() => transmitter.streams.length === 1);
    const [again] = transmitter.streams as [TransmitterStream];
    await until(() => transmitter.requests.filter((each) => each === 'POST /streams').length === 2);
    expect(again.events_requested).toContain(eventTypes['session-revoked']);
  });
});
