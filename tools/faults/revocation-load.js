// Rows about revocations under load: the time until every instance refuses, and many cutoffs a second.
import { setTimeout as sleep } from 'node:timers/promises';
import { openAsker } from '../load/asker.js';
import { startRedis } from '../shared/redis.js';
import { ask, formatLogout, formatRequest, openWatcher, validKinds } from './revocation-scene.js';

/** Milliseconds after the confirmation of a logout. */
const bound = 1000;
const validTokens = 50;

/** Starts valid tokens at every instance; `rate` is a second, for all. Returns the function that ends them and counts. */
async function startValid({ load, provider, instances }, rate) {
  const tokens = Array.from({ length: validTokens }, (_, i) => provider.token(`valid-${i}`));
  const names = instances.map((_, i) => `revocations-${i}`);
  const part = { rate: rate / instances.length, connections: 24, kinds: validKinds(tokens) };
  for (const [i, { port }] of instances.entries()) await load.start(names[i], { port, ...part });
  return async () => {
    const reports = await Promise.all(names.map((name) => load.stop(name)));
    const sum = (read) => reports.reduce((total, report) => total + read(report), 0);
    const count = (counts) => Object.values(counts).reduce((total, times) => total + times, 0);
    return {
      requests: sum(({ answered }) => answered),
      refused: sum(({ wrong, unexplained }) => count(wrong) + count(unexplained)),
      broken: sum(({ lost }) => lost),
    };
  };
}

/** Counts the samples that an instance still accepts. */
export async function countAccepted({ instances }, tokens) {
  let accepted = 0;
  for (const token of tokens) for (const instance of instances) if ((await ask(instance, token)) !== 401) accepted++;
  return accepted;
}

/** Sends a logout until it is confirmed. */
export async function insist(counts, send) {
  while ((await send()).status !== 200) {
    counts.retries++;
    await sleep(50);
  }
}

/** One logout after the other; each is awaited on a connection of every instance. */
async function playLogouts(scene) {
  const { quick, provider, instances } = scene;
  const watchers = await Promise.all(instances.map((each) => openWatcher(each, provider.token('watcher'))));
  const senders = instances.map(({ port }) => openAsker(port));
  const endValid = await startValid(scene, 2000);
  const counts = { confirmed: 0, retries: 0, accepted: 0 };
  const waits = [];
  const tokens = [];
  const startedAt = performance.now();
  for (let i = 0; i < (quick ? 40 : 300); i++) {
    const sid = `load-${i}`;
    const token = provider.token(sid);
    const bytes = formatRequest(token);
    // Twice: the second time the token is cached.
    for (let n = 0; n < 2; n++) await Promise.all(watchers.map((watcher) => watcher.ask(bytes)));
    const logout = formatLogout(provider.logoutToken(sid));
    await insist(counts, () => senders[i % senders.length].ask(logout));
    const confirmedAt = performance.now();
    counts.confirmed++;
    const times = await Promise.all(watchers.map((watcher) => awaitRefusal(watcher, { bytes, confirmedAt, counts })));
    waits.push(Math.max(...times));
    tokens.push(token);
    await sleep(50);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const valid = await endValid();
  for (const each of [...watchers, ...senders]) each.close();
  const note = `${Math.round(valid.requests / seconds)} valid a second; refused by every instance, p99`;
  return { ...counts, ...valid, waits, note, left: await countAccepted(scene, tokens) };
}

/** Milliseconds from the confirmation until a connection gets 401. */
async function awaitRefusal(watcher, { bytes, confirmedAt, counts }) {
  for (;;) {
    const sentAt = performance.now();
    const { status } = await watcher.ask(bytes);
    if (status === 401) return performance.now() - confirmedAt;
    if (status === 200 && sentAt > confirmedAt + bound) counts.accepted++;
    if (sentAt > confirmedAt + 20 * bound) throw new Error(`a token that was revoked got ${status} for 20 s`);
  }
}

/** Logout tokens at a constant rate, however long the responses take. */
async function playManyCutoffs(scene) {
  const { quick, provider, instances } = scene;
  const rate = 1000;
  const length = quick ? 5 : 60;
  const total = rate * length;
  // A host that cannot keep up ends the row as well: what counts is the tokens.
  const mostMilliseconds = 3 * length * 1000;
  const sampled = quick ? 50 : 250;
  const endValid = await startValid(scene, 500);
  const counts = { confirmed: 0, retries: 0, accepted: 0 };
  const waits = [];
  const tokens = [];
  const checks = [];
  let next = 0;
  const startedAt = performance.now();

  const checkLater = async (token) => {
    await sleep(bound);
    counts.accepted += await countAccepted(scene, [token]);
  };
  const sendInTurn = async (sender) => {
    for (let i = next++; i < total && performance.now() - startedAt < mostMilliseconds; i = next++) {
      const sid = `many-${i}`;
      const dueAt = startedAt + (i * 1000) / rate;
      await sleep(Math.max(0, dueAt - performance.now()));
      const token = i % sampled === 0 ? provider.token(sid) : undefined;
      if (token !== undefined) tokens.push(token);
      const logout = formatLogout(provider.logoutToken(sid));
      const sentAt = performance.now();
      await insist(counts, () => sender.ask(logout));
      counts.confirmed++;
      waits.push(performance.now() - sentAt);
      if (token !== undefined) checks.push(checkLater(token));
    }
  };
  const senders = Array.from({ length: 32 }, (_, i) => openAsker(instances[i % instances.length].port));
  await Promise.all(senders.map(sendInTurn));
  const seconds = (performance.now() - startedAt) / 1000;
  await Promise.all(checks);
  const valid = await endValid();
  for (const each of senders) each.close();
  const note = `${Math.round(counts.confirmed / seconds)} logouts a second; p99 of the response to the sender`;
  return { ...counts, ...valid, waits, note, left: await countAccepted(scene, tokens) };
}

/** Rows by name. */
export const loadRows = {
  'under-load': { quick: true, open: startRedis, play: playLogouts },
  'many-cutoffs': { quick: true, open: startRedis, play: playManyCutoffs },
};
