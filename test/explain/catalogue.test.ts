import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { AccessError, type Reason } from '../../src/core/failures.ts';
import type { DpopMode } from '../../src/core/http/credentials.ts';
import type { Connection, ResourceRequest } from '../../src/core/http/request.ts';
import { algorithms, type TokenAlg } from '../../src/core/jose/jws.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { explain } from '../../src/explain/explain.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { formatExplanation, plainStyle } from '../../src/explain/terminal-text.ts';
import { catalogue } from '../hostile/catalogue.ts';
import type { HostileCase, Sent, ServiceName } from '../hostile/hostile-case.ts';
import { hostileKeys } from '../hostile/key-sets.ts';
import { beyondDefaultKeys } from '../hostile/signatures-beyond-default.ts';
import { openWorld, type World } from '../hostile/world.ts';
import { findLeaks } from '../support/leaks.ts';
import { reasonsOutsideDryRun } from '../support/reasons-without-check.ts';

const modes: readonly DpopMode[] = ['off', 'allowed', 'required'];
const connection: Connection = { remoteAddress: '127.0.0.1', encrypted: false };
const policy = { scopes: ['read:messages'] };

/** One server of the library for each service of the catalogue and each mode, with what shows whether it has changed. */
interface Subject {
  readonly server: ResourceServer;
  state(): string;
}

let world: World;
const subjects = new Map<string, Subject>();
beforeAll(async () => {
  world = await openWorld({ published: [...hostileKeys, ...beyondDefaultKeys] });
  const more: Readonly<Record<ServiceName, object>> = {
    default: {},
    allAlgorithms: { algorithms: [...algorithms.keys()] as TokenAlg[] }, // the keys of the table are the names
    trustedProxy: { trustProxy: ['127.0.0.1'] },
  };
  for (const [name, options] of Object.entries(more)) {
    for (const mode of modes) {
      const replay = createMemoryReplayStore({ since: 0 });
      const { issuer, audience, ca } = world.provider;
      const server = createResourceServer({ issuer, audience, ca, dpop: { mode, replay }, ...options });
      await server.ready();
      const state = () =>
        JSON.stringify([
          replay.size,
          server.tokenCacheStatus(),
          world.provider.requests('jwks'),
          world.decoy.connections,
        ]);
      subjects.set(`${name} ${mode}`, { server, state });
    }
  }
}, 60_000);
afterAll(async () => {
  for (const { server } of subjects.values()) server.close();
  await world.close();
});

/** The request of a case, if it is one: bytes that are no HTTP reach nobody who judges. */
function readRequest(sent: Sent): ResourceRequest | undefined {
  if (typeof sent === 'string') return readRequest({ headers: ['Authorization', `Bearer ${sent}`] });
  if ('raw' in sent) return undefined;
  const { path = '/api/private', method = 'GET', headers: lines } = sent;
  const { host } = new URL(world.service().url);
  const headers = new Map([['host', host]]);
  for (let at = 0; at + 1 < lines.length; at += 2) {
    const name = String(lines[at]).toLowerCase();
    const before = name === 'host' ? undefined : headers.get(name);
    headers.set(name, before === undefined ? String(lines[at + 1]) : `${before}, ${lines[at + 1]}`);
  }
  return {
    method,
    url: `http://${headers.get('host')}${path}`,
    target: path,
    headers: { get: (name) => headers.get(name.toLowerCase()) ?? null },
  };
}

/** Parts of credentials with 16 characters and more that an output holds. */
function leaksOf(request: ResourceRequest, outputs: readonly string[]): readonly string[] {
  const values = ['authorization', 'dpop', 'cookie'].map((name) => request.headers.get(name) ?? '');
  return findLeaks(
    values.flatMap((value) => value.split(/[\s.,;]+/)),
    outputs,
  );
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for
const controls = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

async function expectExplained(each: HostileCase, request: ResourceRequest, mode: DpopMode): Promise<void> {
  const { server, state } = subjects.get(`${each.service} ${mode}`) ?? {};
  if (server === undefined || state === undefined) throw new Error('There is no such server.');
  const before = state();
  const explanation: Explanation = await explain(server, request, policy, connection);
  expect(state()).toBe(before);
  const outputs = [
    JSON.stringify(explanation),
    formatExplanation(explanation),
    formatExplanation(explanation, { ...plainStyle, characters: 'ascii' }),
  ];
  expect(leaksOf(request, outputs)).toEqual([]);
  for (const output of outputs) expect(output).not.toMatch(controls);
  const judged = await server.judge(request, policy, connection);
  const reason: Reason | undefined = judged instanceof AccessError ? judged.reason : undefined;
  // A dry run cannot tell what nobody but the replay store knows.
  if (reason !== undefined && reasonsOutsideDryRun.includes(reason)) return;
  expect(explanation.reason).toBe(reason);
  expect(explanation.checks.find(({ verdict }) => verdict === 'fail')?.reason).toBe(reason);
}

describe.each(modes)(
  'DPoP %s: the explanation has the same reason as the refusal, changes nothing, and shows no secret',
  (mode) => {
    it.each(Object.entries(catalogue))('%s', async (_, cases) => {
      let explained = 0;
      for (const each of cases) {
        const request = readRequest(each.make(world));
        if (request === undefined) continue;
        await expectExplained(each, request, mode).catch((error: unknown) => {
          throw new Error(`${each.attack}, ${each.name}`, { cause: error });
        });
        explained++;
      }
      expect(explained).toBeGreaterThan(5);
    });
  },
);
