import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { AccessError, type Reason } from '../../src/core/failures.ts';
import type { DpopMode } from '../../src/core/http/credentials.ts';
import type { Connection, ResourceRequest } from '../../src/core/http/request.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { explain } from '../../src/explain/explain.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { formatExplanation, plainStyle } from '../../src/explain/terminal-text.ts';
import { readRequest, serverOptions } from '../catalogue/judge-case.ts';
import { hostileKeys } from '../catalogue/key-sets.ts';
import type { HostileCase } from '../catalogue/row.ts';
import { catalogue } from '../catalogue/rows.ts';
import { beyondDefaultKeys } from '../catalogue/signatures-beyond-default.ts';
import { openWorld, type World } from '../catalogue/world.ts';
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
  world = await openWorld({ published: [...hostileKeys, ...beyondDefaultKeys], services: [] });
  for (const [name, options] of Object.entries(serverOptions)) {
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
});
afterAll(async () => {
  for (const { server } of subjects.values()) server.close();
  await world.close();
});

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
    // The mode decides about scheme and proof, before any part of a token is read.
    const parts = Object.entries(catalogue).filter(([part]) => mode === 'allowed' || ['DPoP', 'HTTP'].includes(part));
    it.each(parts)('%s', async (_, cases) => {
      let explained = 0;
      for (const each of cases) {
        const request = readRequest(each.make(world), world);
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
