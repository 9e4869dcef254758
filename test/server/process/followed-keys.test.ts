import { expect, it } from 'vitest';
import type { KeyOwner } from '../../../src/server/keys/open-keys.ts';
import type { KeyNews } from '../../../src/server/keys/service-keys.ts';
import { createChannel, type PrimaryFunctions, type WorkerFunctions } from '../../../src/server/process/channel.ts';
import { followKeys, provideKeys } from '../../../src/server/process/followed-keys.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const issuer = 'https://idp.example/';
const { keys } = createTestIssuer().jwks;
const before: KeyNews = { fetched: undefined, generation: 0, fetches: 0, usableSeconds: 0, problem: undefined };
const after: KeyNews = {
  fetched: { keys, published: [], ageSeconds: 0, lifetimeSeconds: 600 },
  ...{ generation: 1, fetches: 1, usableSeconds: 600, problem: undefined },
};

it('response with the state before a fetch, and the news of the fetch in one read → the worker has the keys', async () => {
  const toPrimary: object[] = [];
  const toWorker: object[] = [];
  const worker = createChannel<WorkerFunctions, PrimaryFunctions>((message) => void toPrimary.push(message));
  const primary = createChannel<PrimaryFunctions, WorkerFunctions>((message) => void toWorker.push(message));
  let news = before;
  const owner = { open: async () => ({}), news: () => news } as unknown as KeyOwner; // what is called of it
  primary.provide({ keys: (request) => provideKeys(owner, request, primary) });

  const opened = followKeys(worker).open(issuer);
  for (const message of toPrimary) await primary.receive(message);
  news = after;
  primary.call('keys', { name: issuer, news });
  // Node emits the messages of one read before promises are settled.
  for (const message of toWorker) void worker.receive(message);
  expect((await opened).set.usable()).toBe(true);
});
