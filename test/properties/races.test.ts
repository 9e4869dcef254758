import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc, { type Scheduler } from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { openExchange } from '../../src/core/exchange/exchange.ts';
import { createExchangeCache } from '../../src/core/exchange/exchange-cache.ts';
import type { Fetch } from '../../src/core/outbound/http-client.ts';
import { errorBodyFormats } from '../../src/core/refusal/error-body.ts';
import { type Access, endAtExpiry } from '../../src/core/resource-server/access.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createMemoryRevocationStore } from '../../src/core/revocation/memory-store.ts';
import { createRevocations } from '../../src/core/revocation/revocations.ts';
import { RulesError } from '../../src/gate/match/rules.ts';
import { openRules } from '../../src/gate/rules/open-rules.ts';
import { listen } from '../../src/server/listener/listener.ts';
import type { Log } from '../../src/server/observation/log.ts';
import { createMetrics } from '../../src/server/observation/metrics.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { send } from '../support/http-client.ts';
import { bearer, judge } from '../testing/judge.ts';
import { configureProperties } from './settings.ts';

configureProperties();

type Race = (scheduler: Scheduler) => Promise<void>;
const runs = Math.ceil((fc.readConfigureGlobal().numRuns ?? 0) / 4);
/** Runs a race in many orders of its steps; a failure prints the order. */
const inAnyOrder = (race: Race, numRuns = runs) => fc.assert(fc.asyncProperty(fc.scheduler(), race), { numRuns });
/** A moment that the scheduler chooses. */
const moment = (scheduler: Scheduler, label: string) => scheduler.schedule(Promise.resolve(), label);

const issuer = createTestIssuer({ alg: 'ES256' });
const { audience } = issuer;
const url = 'https://api.test/messages';
const call = (sub: string) => new Request(url, bearer(issuer.token({ sub })));

describe('keys that are replaced while calls fetch them', () => {
  const stranger = createTestIssuer({ alg: 'ES256' });
  const [published, later] = [createTestIssuer({ alg: 'ES256' }), createTestIssuer({ alg: 'ES256' })];
  const tokens = { before: published.token(), after: later.token(), never: stranger.token() };

  it('any order → a token of the new key ends tokens of the old one, and few fetches are made', () =>
    inAnyOrder(async (scheduler) => {
      let keys = published.jwks;
      let fetches = 0;
      const fetch: Fetch = async (address) => {
        const own = { issuer: published.issuer, jwks_uri: `${published.issuer}jwks` };
        if (!address.endsWith('jwks')) return Response.json(own);
        fetches++;
        await moment(scheduler, 'the request arrives');
        const body = keys;
        await moment(scheduler, 'the response arrives');
        return Response.json(body);
      };
      const server = createResourceServer({ issuer: published.issuer, audience, algorithms: ['ES256'], fetch });
      let isReplaced = false;
      const ask = async (name: keyof typeof tokens): Promise<void> => {
        await moment(scheduler, name);
        const wasReplaced = isReplaced;
        const verdict = await judge(server, bearer(tokens[name]));
        if (name === 'after' && verdict === 'accepted') isReplaced = true;
        expect(
          name === 'never' || (name === 'before' && wasReplaced) ? ['unknown_kid'] : ['accepted', 'unknown_kid'],
        ).toContain(verdict);
      };
      const calls = (['before', 'after', 'before', 'never', 'after', 'before'] as const).map(ask);
      const replaced = moment(scheduler, 'other keys').then(() => {
        keys = later.jwks;
      });
      await scheduler.waitFor(Promise.all([...calls, replaced]));
      // Three fetches for unknown keys are allowed at once; the first one was for any.
      expect(fetches).toBeLessThanOrEqual(4);
      server.close();
    }));
});

describe('a user who is revoked during requests', () => {
  function open(scheduler: Scheduler) {
    const memory = createMemoryRevocationStore();
    const write = async (...records: Parameters<typeof memory.write>): Promise<void> => {
      await moment(scheduler, 'the store writes');
      await memory.write(...records);
      await moment(scheduler, 'the store responds');
    };
    const revocations = createRevocations({ store: { ...memory, write } });
    const server = createResourceServer({ issuers: [issuer], audience, algorithms: ['ES256'], revocations });
    let isRevoked = false;
    const revoke = async (): Promise<void> => {
      await moment(scheduler, 'revoke');
      await revocations.revoke({ issuer: issuer.issuer, sub: 'mallory', before: Math.ceil(Date.now() / 1000) });
      isRevoked = true;
    };
    return { server, revoke, isRevoked: () => isRevoked };
  }

  it('any order → refused once it is stored; what was admitted before ends; no other user is refused', () =>
    inAnyOrder(async (scheduler) => {
      const { server, revoke, isRevoked } = open(scheduler);
      const ended: string[] = [];
      const admitted: string[] = [];
      const ask = async (sub: string, index: number): Promise<void> => {
        await moment(scheduler, `${sub} calls`);
        let wasRevoked = isRevoked();
        const claims = z.object({ sub: z.string() }).refine(async () => {
          await moment(scheduler, `the policy for ${sub}`);
          wasRevoked = isRevoked();
          return true;
        });
        const access = await server.judge(call(sub), { claims });
        if ('reason' in access) return expect([sub, access.reason]).toEqual(['mallory', 'revoked_token']);
        expect(sub === 'mallory' && wasRevoked).toBe(false);
        admitted.push(sub + index);
        endAtExpiry(access, () => void ended.push(sub + index));
      };
      const subjects = ['mallory', 'alice', 'mallory', 'mallory'];
      await scheduler.waitFor(Promise.all([...subjects.map(ask), revoke()]));
      const expected = admitted.filter((each) => each.startsWith('mallory')).toSorted();
      await vi.waitFor(() => expect(ended.toSorted()).toEqual(expected), { timeout: 20_000, interval: 1 });
    }));

  it('any order of exchanges → no new token once it is stored, and none of them stays cached', () =>
    inAnyOrder(async (scheduler) => {
      const { server, revoke, isRevoked } = open(scheduler);
      const cache = createExchangeCache();
      const fetch: Fetch = async (_address, { body }) => {
        await moment(scheduler, 'the request arrives');
        const subject = new URLSearchParams(body).get('subject_token') ?? '';
        const { sub } = JSON.parse(Buffer.from(subject.split('.')[1] ?? '', 'base64url').toString());
        await moment(scheduler, 'the response arrives');
        const type = 'urn:ietf:params:oauth:token-type:access_token';
        return Response.json({
          ...{ access_token: `${sub}-${isRevoked() ? 'late' : 'new'}`, token_type: 'Bearer', issued_token_type: type },
          expires_in: 300,
        });
      };
      const client = { issuer: issuer.issuer, clientId: 'gate', clientSecret: 's', endpoint: 'https://idp.test/token' };
      const exchange = openExchange({ ...client, fetch }, cache);
      const target = exchange.prepare({ audience: 'https://orders.test/' });
      const accesses = new Map<string, Access>();
      for (const sub of ['mallory', 'alice']) accesses.set(sub, await server.authorize(call(sub)));
      const take = async (sub: string): Promise<void> => {
        await moment(scheduler, `${sub} takes`);
        const wasRevoked = isRevoked();
        const result = await exchange.take(accesses.get(sub) as Access, target); // both were admitted
        if ('reason' in result) return expect([sub, result.reason]).toEqual(['mallory', 'revoked_token']);
        expect(sub === 'mallory' && wasRevoked).toBe(false);
        expect(sub === 'mallory' ? ['mallory-new'] : ['alice-new', 'alice-late']).toContain(result.token);
      };
      const takes = ['mallory', 'alice', 'mallory', 'alice', 'mallory'].map(take);
      await scheduler.waitFor(Promise.all([...takes, revoke()]));
      await vi.waitFor(() => expect(cache.status().entries).toBe(1), { timeout: 20_000, interval: 1 });
      exchange.close();
    }));
});

describe('rules that change while others are prepared', () => {
  const rulesOf = (id: string): string => `rules:\n  - { id: ${id}, path: /**, access: open }\n`;

  it('any order → active in the order of the file, the last valid ones at the end', () =>
    inAnyOrder(async (scheduler) => {
      const folder = mkdtempSync(join(tmpdir(), 'portcullis-races-'));
      const path = join(folder, 'rules.yaml');
      writeFileSync(path, rulesOf('first'));
      const reloads: (() => void | Promise<void>)[] = [];
      const rules = openRules({
        origin: { kind: 'file', path },
        log: { write: () => undefined } as unknown as Log, // only its lines are written here
        metrics: createMetrics(),
        reloads: { add: (each) => void reloads.push(each) },
      });
      const active: string[] = [];
      const follow = rules.follow({
        async prepare({ rules: [rule] }) {
          const id = rule?.id ?? '';
          await moment(scheduler, `prepare ${id}`);
          if (id === 'unusable') throw new RulesError('unusable');
          return { commit: () => void active.push(id) };
        },
      });
      await scheduler.waitFor(follow);
      const written = ['first'];
      const change = async (id: string): Promise<void> => {
        await moment(scheduler, `write ${id}`);
        written.push(id);
        writeFileSync(path, id === 'malformed' ? 'rules: [' : rulesOf(id));
        await Promise.all(reloads.map((reload) => reload()));
      };
      await scheduler.waitFor(Promise.all(['a', 'unusable', 'b', 'malformed', 'c'].map(change)));
      rules.close();
      rmSync(folder, { recursive: true });
      const places = active.map((id) => written.indexOf(id));
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      expect(new Set(active).size).toBe(active.length);
      const last = written.at(-1) ?? '';
      if (last.length === 1) expect(active.at(-1)).toBe(last);
    }));
});

describe('a shutdown during requests', () => {
  it('a resource server whose keys are being fetched: any order → every call ends, and no fetch begins afterwards', () =>
    inAnyOrder(async (scheduler) => {
      let isClosed = false;
      const fetch: Fetch = async (address) => {
        expect(isClosed).toBe(false);
        await moment(scheduler, 'the response arrives');
        const own = { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}jwks` };
        return Response.json(address.endsWith('jwks') ? issuer.jwks : own);
      };
      const server = createResourceServer({ issuer: issuer.issuer, audience, algorithms: ['ES256'], fetch });
      const calls = ['alice', 'bob', 'alice'].map(async (sub) => {
        await moment(scheduler, `${sub} calls`);
        const verdict = await judge(server, bearer(issuer.token({ sub })));
        expect(['accepted', 'keys_unavailable']).toContain(verdict);
      });
      const closed = moment(scheduler, 'close').then(() => {
        isClosed = true;
        server.close();
      });
      await scheduler.waitFor(Promise.all([...calls, closed]));
    }));

  it('a listener: any order → each request that was accepted gets its response, and then it is closed', () =>
    inAnyOrder(async (scheduler) => {
      const begun: string[] = [];
      const listener = await listen({
        ...{ host: '127.0.0.1', port: 0, keepAlive: 5, errorBody: errorBodyFormats.detail },
        onRequest: (incoming, outgoing) => {
          begun.push(incoming.url ?? '');
          void moment(scheduler, `respond to ${incoming.url}`).then(() => outgoing.end(incoming.url));
        },
      });
      const responses: string[] = [];
      const calls = ['/1', '/2', '/3'].map(async (path) => {
        await moment(scheduler, `call ${path}`);
        const { body } = await send(listener.url, path).catch(() => ({ body: 'refused' }));
        responses.push(body);
      });
      const closed = moment(scheduler, 'close').then(() => listener.close(30));
      await scheduler.waitFor(Promise.all([...calls, closed]));
      expect(responses.filter((body) => body !== 'refused').toSorted()).toEqual(begun.toSorted());
      await expect(send(listener.url, '/')).rejects.toThrow();
    }, 20));
});
