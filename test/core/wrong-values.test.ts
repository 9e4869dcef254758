import { describe, expect, it } from 'vitest';
import { createBackchannelLogout, createSignalsReceiver } from '../../src/adapters/node.ts';
import {
  createAssertionVerifier,
  createAudit,
  createIntrospection,
  createKeySet,
  createMemoryReplayStore,
  createRedisReplayStore,
  createRedisRevocationStore,
  createResourceServer,
  createRevocations,
  createTokenExchange,
} from '../../src/index.ts';

const url = 'https://idp.example/';
const client = { issuer: url, clientId: 'api', clientSecret: 'secret' };
const server = createResourceServer({ issuer: url, audience: 'api', revocations: createRevocations() });
const stream = { transmitter: url, issuer: url, audience: 'api', authorization: 'Bearer a' };
const outbound = { fetch: ['fetch', {}], environment: ['HTTPS_PROXY'] };
const connection = {
  timeout: ['1', 0, -1, Number.NaN, 250],
  onConnection: [true],
  tls: [true],
  sentinel: ['password'],
};
const functions = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, [true, {}, null]]));

/** Options that the types exclude, as code without types has them: a function, valid options, and invalid values. */
const wrong: readonly (readonly [string, (options: never) => unknown, object, Readonly<Record<string, unknown[]>>])[] =
  [
    ['createResourceServer', createResourceServer, { issuer: url, audience: 'api' }, { algorithms: [null] }],
    ['createResourceServer', createResourceServer, { audience: 'api' }, { issuers: [[]] }],
    ['createIntrospection', createIntrospection, { ...client, endpoint: url }, { ...outbound, ...functions('now') }],
    ['createTokenExchange', createTokenExchange, client, { ...outbound, endpoint: [null, ''] }],
    [
      'createKeySet',
      createKeySet,
      { issuer: url },
      { ...outbound, mode: ['always'], fallback: [false], keyCache: [{}], ...functions('now', 'random', 'onEvent') },
    ],
    ['createMemoryReplayStore', createMemoryReplayStore, {}, functions('now')],
    [
      'createRedisReplayStore',
      (options) => createRedisReplayStore('redis://127.0.0.1:1', options),
      {},
      { ...connection, namespace: [7, null], ...functions('now') },
    ],
    [
      'createRedisRevocationStore',
      (options) => createRedisRevocationStore('redis://127.0.0.1:1', options),
      {},
      connection,
    ],
    [
      'createAssertionVerifier',
      createAssertionVerifier,
      { issuer: url, audience: 'api', jwks: url },
      { jwks: [[]], ...functions('now') },
    ],
    [
      'createBackchannelLogout',
      (options) => createBackchannelLogout(server, options),
      { clientIds: ['app'] },
      { subject: ['false', 1], ...functions('onLogout') },
    ],
    [
      'createSignalsReceiver',
      (options) => createSignalsReceiver(server, options),
      { streams: { a: stream } },
      { ...outbound, ...functions('onStreamEvent') },
    ],
    [
      'createAudit',
      createAudit,
      { destination: 'stdout', identity: 'off' },
      { onstate: [() => {}], identitySecret: [7], ...functions('onState') },
    ],
  ];

describe.each(wrong)('%s', (_, create, valid, members) => {
  const cases = Object.entries(members).flatMap(([name, values]) => values.map((value) => [name, value] as const));

  it.each(cases)('%s: %j → TypeError that names it', async (name, value) => {
    const options = { ...valid, [name]: value } as never; // as in code without types
    const created = (async () => create(options))();
    await expect(created).rejects.toThrow(TypeError);
    await expect(created).rejects.toThrow(name);
  });
});
