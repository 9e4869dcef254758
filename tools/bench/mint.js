// Makes tokens and proofs in worker threads, one a processor: what a run needs by the ten thousand.
import { createHash, createPrivateKey, randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { makeClaims, signJws } from '../shared/tokens.js';

const digest = (text) => createHash('sha256').update(text).digest('base64url');

function prove({ token, url, now, jwk, key }) {
  const claims = { jti: randomUUID(), htm: 'GET', htu: url, iat: now, ath: digest(token) };
  return signJws({ typ: 'dpop+jwt', alg: 'ES256', jwk }, claims, key);
}

/** Functions of the workers by name; each returns one line of a file for wrk. */
const makers = {
  bearer: ({ alg, kid, key, ...about }) => `Bearer ${signJws({ alg, typ: 'JWT', kid }, makeClaims(about), key)}`,
  proof: ({ token, url, now, jwk, proofKey }) => `DPoP ${token}\t${prove({ token, url, now, jwk, key: proofKey })}`,
};

if (!isMainThread && parentPort !== null && workerData?.makes === 'lines') {
  const port = parentPort;
  const keys = new Map();
  const readKey = (pem) => {
    if (!keys.has(pem)) keys.set(pem, createPrivateKey(pem));
    return keys.get(pem);
  };
  port.on('message', ({ id, maker, count, about }) => {
    const { key, proofKey, ...rest } = about;
    const told = {
      ...rest,
      ...(key !== undefined && { key: readKey(key) }),
      ...(proofKey !== undefined && { proofKey: readKey(proofKey) }),
    };
    port.postMessage({ id, lines: Array.from({ length: count }, () => makers[maker](told)) });
  });
}

/** Starts the workers. `make(maker, count, about)` resolves with N lines; keys in `about` are PEM. */
export function startMint() {
  const waiting = new Map();
  let next = 0;
  const workers = Array.from({ length: availableParallelism() }, () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { makes: 'lines' } });
    worker.on('message', ({ id, lines }) => {
      waiting.get(id).resolve(lines);
      waiting.delete(id);
    });
    worker.on('error', (error) => {
      for (const { reject } of waiting.values()) reject(error);
    });
    return worker;
  });
  const ask = (worker, order) =>
    new Promise((resolve, reject) => {
      const id = next++;
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, ...order });
    });
  return {
    async make(maker, count, about) {
      const share = Math.ceil(count / workers.length);
      const now = Math.floor(Date.now() / 1000);
      const parts = await Promise.all(
        workers.map((worker) => ask(worker, { maker, count: share, about: { now, ...about } })),
      );
      return parts.flat().slice(0, count);
    },
    close: () => Promise.all(workers.map((worker) => worker.terminate())),
  };
}
