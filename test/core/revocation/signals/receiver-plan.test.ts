/*
 * Cases of the receiver test plans of the OpenID Foundation (conformance suite, `openid-ssf-receiver-test-plan` and
 * `openid-ssf-receiver-caep-test-plan`), with the names of their modules. The suite itself cannot be installed from a registry.
 * Modules about streams that the receiver creates, polls or deletes have no equal here: an administrator creates the stream.
 */
import { expect, it } from 'vitest';
import { createTestIssuer } from '../../../../src/testing/index.ts';
import { eventTypes } from '../../../support/transmitter.ts';
import { open, session, user } from './open-stream.ts';

type Opened = Awaited<ReturnType<typeof open>>;
const aboutStream = ({ remote }: Opened) => ({ format: 'opaque', id: remote.stream_id });

/** Delivers a token. Returns whether the receiver acknowledged it, or the error code of its refusal. */
async function deliver({ post }: Opened, token: string): Promise<string> {
  const { status, body } = await post(token);
  return status === 202 ? 'acknowledged' : String((body as { readonly err: string }).err);
}

it('supported-events: each event of CAEP and RISC → acknowledged', async () => {
  const opened = await open();
  const { transmitter, remote } = opened;
  const names = Object.keys(eventTypes).filter((name) => name !== 'verification' && name !== 'stream-updated');
  const seen: [string, string][] = [];
  for (const name of names) {
    const token = transmitter.event(remote, eventTypes[name as keyof typeof eventTypes], user);
    seen.push([name, await deliver(opened, token)]);
  }
  expect(seen).toEqual(names.map((name) => [name, 'acknowledged']));
});

it('happypath, stream-verification, verification-behind-queued-events: all acknowledged, and verified', async () => {
  let time = Date.now() / 1000;
  const opened = await open({ now: () => time, verifyEvery: 60 });
  const { transmitter, remote, reasonOf, stream } = opened;
  time += 121;
  expect(stream().state()).toBe('stale');
  const events = ['ann', 'bob', 'eve'].map((sub) =>
    transmitter.event(remote, eventTypes['account-disabled'], { ...user, sub }),
  );
  const verification = transmitter.event(remote, eventTypes.verification, aboutStream(opened), { state: 'x' });
  const results: string[] = [];
  for (const token of [...events, verification]) results.push(await deliver(opened, token));
  expect(results).toEqual(Array(4).fill('acknowledged'));
  expect([stream().state(), reasonOf({ iat: time - 181 })]).toEqual(['ok', 'revoked_token']);
});

it('redelivered-set: the same token again → acknowledged again, and one cutoff', async () => {
  const opened = await open();
  const { transmitter, remote, revocations } = opened;
  const token = transmitter.event(remote, eventTypes['account-disabled'], user);
  expect(await deliver(opened, token)).toBe('acknowledged');
  const { cutoffs } = revocations.status();
  expect(await deliver(opened, token)).toBe('acknowledged');
  expect(revocations.status().cutoffs).toBe(cutoffs);
});

it('invalid-set-rejection: signature, iss, aud, a key of no JWKS → refused with the code of each', async () => {
  const opened = await open();
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

it('transmitter-initiated-status-change: paused, an event, enabled → all acknowledged', async () => {
  const opened = await open();
  const { transmitter, remote, reasonOf } = opened;
  const update = (status: string) =>
    transmitter.event(remote, eventTypes['stream-updated'], aboutStream(opened), { status, reason: 'maintenance' });
  expect(await deliver(opened, update('paused'))).toBe('acknowledged');
  expect(await deliver(opened, transmitter.event(remote, eventTypes['account-disabled'], user))).toBe('acknowledged');
  expect([await deliver(opened, update('enabled')), reasonOf()]).toEqual(['acknowledged', 'revoked_token']);
});

it('removed-subject-event: an event about a subject that matches nothing → acknowledged', async () => {
  const opened = await open();
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
    const opened = await open({ events: ['session-revoked', 'credential-change'] });
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
