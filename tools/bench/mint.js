// Makes tokens and proofs in worker threads, one a processor: what a run needs by the ten thousand.
import { createHash, createPrivateKey, randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { thumbprint } from '../../build/core/jose/jwk.js';
import { makeClaims, makeKeyPair, signJws } from '../shared/tokens.js';

const digest = (text) => createHash('sha256').update(text).digest('base64url');

function prove({ token, url, now, jwk, key }) {
  const claims = { jti: randomUUID(), htm: 'GET', htu: url, iat: now, ath: digest(token) };
  return signJws({ typ: 'dpop+jwt', alg: 'ES256', jwk }, claims, key);
}

/** Functions of the workers by name; each returns one line of a file for wrk. */
const makers = {
  bearer: ({ alg, kid, key, ...about }) => `Bearer ${signJws({ alg, typ: 'JWT', kid }, makeClaims(about), key)}`,
  proof: ({ token, url, now, jwk, proofKey }) => `DPoP ${token}\t${prove({ token, url, now, jwk, key: proofKey })}`,
  /** A proof of the client with this number, and the client’s token. @param {any} about @param {number} index */
  ownKey({ url, ...about }, index) {
    clients[index] ??= makeClient(about);
    const { token, jwk, key } = clients[index];
    return `DPoP ${token}\t${prove({ token, url, now: about.now, jwk, key })}`;
  },
};

/** Kept for all rounds, since a token takes a millisecond to sign; each round has servers that do not know them. */
const clients = [];

/** Creates a key pair and the token bound to it. */
function makeClient({ alg, kid, key, ...about }) {
  const { publicKey, privateKey } = makeKeyPair('ec', { namedCurve: 'P-256' });
  const jwk = publicKey.export({ format: 'jwk' });
  const claims = { cnf: { jkt: thumbprint(jwk) } };
  return { token: signJws({ alg, typ: 'JWT', kid }, makeClaims({ ...about, claims }), key), jwk, key: privateKey };
}

if (!isMainThread && parentPort !== null && workerData?.makes === 'lines') {
  const port = parentPort;
  const keys = new Map();
  const readKey = (pem) => {
    if (!keys.has(pem)) keys.set(pem, createPrivateKey(pem));
    return keys.get(pem);
  };
  port.on('message', ({ id, maker, first, count, about }) => {
    const { key, proofKey, ...rest } = about;
    const told = {
      ...rest,
      ...(key !== undefined && { key: readKey(key) }),
      ...(proofKey !== undefined && { proofKey: readKey(proofKey) }),
    };
    port.postMessage({ id, lines: Array.from({ length: count }, (_, i) => makers[maker](told, first + i)) });
  });
}

/**
 * Starts the workers. `make(maker, count, about, first)` resolves with so many lines; keys in `about` are PEM, and `first` is
 * the number of the first client, where each line has its own.
 */
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
    async make(maker, count, about, first = 0) {
      const share = Math.ceil(count / workers.length);
      const from = Math.ceil(first / workers.length);
      const now = Math.floor(Date.now() / 1000);
      const parts = await Promise.all(
        workers.map((worker) => ask(worker, { maker, first: from, count: share, about: { now, ...about } })),
      );
      return parts.flat().slice(0, count);
    },
    close: () => Promise.all(workers.map((worker) => worker.terminate())),
  };
}
