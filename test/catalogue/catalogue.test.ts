import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../support/http-client.ts';
import { hashToken, mintProof, thumbprintOf } from '../support/proofs.ts';
import { judgeCase } from './judge-case.ts';
import { hostileKeys } from './key-sets.ts';
import type { ServiceName } from './row.ts';
import { httpParts, titleRows } from './rows.ts';
import { beyondDefaultAlgs, beyondDefaultKeys, goodTokenOf } from './signatures-beyond-default.ts';
import { openWorld, type World } from './world.ts';

let world: World;
const startedAt = performance.now();

beforeAll(async () => {
  const published = [...hostileKeys, ...beyondDefaultKeys];
  world = await openWorld({ published, services: ['default', 'allAlgorithms', 'trustedProxy'] });
});
afterAll(() => world.close());

type Control = readonly [name: string, service: ServiceName, make: () => ReturnType<typeof scoped> | string];

const controls: readonly Control[] = [
  ['token of the RSA key', 'default', () => world.mint()],
  ['token of the provider itself', 'allAlgorithms', () => world.mint()],
  ['token of the EC key', 'allAlgorithms', () => world.mint({ key: world.keys.ec })],
  ['token of the Ed25519 key', 'allAlgorithms', () => world.mint({ key: world.keys.ed })],
  ['typ JWT', 'default', () => world.mint({ header: { typ: 'JWT' } })],
  ['typ absent', 'default', () => world.mint({ header: { typ: undefined } })],
  ['typ Application/AT+JWT', 'default', () => world.mint({ header: { typ: 'Application/AT+JWT' } })],
  ['aud in a list', 'default', () => world.mint({ claims: { aud: ['x', world.provider.audience] } })],
  ['bound token with a proof', 'default', () => ({ headers: world.dpop() })],
  [
    'bound token with an unregistered member of cnf and a proof',
    'default',
    () => ({
      headers: world.dpop({}, { claims: { cnf: { jkt: thumbprintOf(world.proofKey.jwk), 'kc-jkt-type': 'DPoP' } } }),
    }),
  ],
  ['scope among others', 'default', () => scoped('openid read:messages')],
  ['scope with spaces around', 'default', () => scoped(' read:messages ')],
  ['proof for the URL of a trusted proxy', 'trustedProxy', () => ({ headers: throughProxy() })],
];

function scoped(scope: string): { readonly path?: string; readonly headers: readonly string[] } {
  return { path: '/api/private-scoped', headers: ['Authorization', `Bearer ${world.mint({ claims: { scope } })}`] };
}

function throughProxy(): readonly string[] {
  const { proofKey: key, mint, now } = world;
  const token = mint({ claims: { cnf: { jkt: thumbprintOf(key.jwk) } } });
  const htu = 'https://api.example.test/v1/api/private';
  const claims = { jti: randomUUID(), htm: 'GET', htu, iat: now(), ath: hashToken(token) };
  const forwarded = ['Proto', 'https', 'Host', 'api.example.test', 'Prefix', '/v1'];
  const lines = forwarded.map((text, index) => (index % 2 === 0 ? `X-Forwarded-${text}` : text));
  return ['Authorization', `DPoP ${token}`, 'DPoP', mintProof(claims, { key }), ...lines];
}

describe('the inputs of the cases', () => {
  it.each(beyondDefaultAlgs)('token of %s → 200', async (alg) => {
    const headers = ['Authorization', `Bearer ${goodTokenOf(alg)(world)}`];
    expect((await send(world.service('allAlgorithms').url, '/api/private', { headers })).status).toBe(200);
  });

  it.each(controls)('%s → 200', async (_, service, make) => {
    const sent = make();
    const request = typeof sent === 'string' ? { headers: ['Authorization', `Bearer ${sent}`] } : sent;
    const { path = '/api/private', ...options } = request;
    expect((await send(world.service(service).url, path, options)).status).toBe(200);
  });
});

// In parallel, because each case waits for its log line, which is written some time after the response.
describe.each(httpParts)('%s', { concurrent: true }, (_, rows) => {
  it.each(titleRows(rows))('%s, %s → %i %s', (...[, , , , row]) => judgeCase(row, world));
});

describe('after all of them', () => {
  it('no request to the decoy, or to another path of the provider', () => {
    expect(world.decoy.connections).toBe(0);
    for (const path of ['/', '/jwks', '/elsewhere', '/key', '/cert'] as const)
      expect(world.provider.requests(path)).toBe(0);
  });

  it('unknown kids → no more fetches than the throttle allows', () => {
    const services = world.services.size;
    const seconds = (performance.now() - startedAt) / 1000;
    expect(world.provider.requests('jwks')).toBeLessThanOrEqual(services * (2 + Math.floor(seconds / 10)));
  });

  it('no 5xx, and valid tokens are still accepted', async () => {
    for (const service of world.services.values()) {
      expect(service.logs.filter(({ event, status }) => event === 'request' && Number(status) >= 500)).toEqual([]);
      expect(
        (await send(service.url, '/api/private', { headers: ['Authorization', `Bearer ${world.mint()}`] })).status,
      ).toBe(200);
    }
  });

  it('no marker in any log line', () => {
    for (const { logs } of world.services.values()) expect(JSON.stringify(logs)).not.toContain(world.marker);
  });
});
