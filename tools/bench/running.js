// Starts one server of the table, checks its responses, and stops it.
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { holdsWithin } from '../shared/network.js';
import { endChild, processors, startChild } from '../shared/processes.js';

/** Seconds. */
const patience = 15;

/** Writes to standard error how far a run is, with the seconds since its start. */
export const say = (text) =>
  process.stderr.write(`${`${Math.round(performance.now() / 1000)} s`.padStart(6)}  ${text}\n`);

const ask = (url, authorization, more = {}) =>
  fetch(url, {
    headers: { ...more, ...(authorization !== undefined && { authorization }) },
    signal: AbortSignal.timeout(2000),
  });

/** Starts a server. Rejects with its last output if it exits, or does not accept a valid token in time. */
export async function startServer(name, server, about) {
  const { scene, port } = about;
  const words = server.command({ ...scene, port, build: server.build, asked: scene.urls?.[server.with] });
  const log = join(scene.folder, `${name}.log`);
  const stderr = openSync(log, 'w');
  const running = startChild(words, {
    processor: server.processor ?? processors.server,
    env: {
      PATH: process.env.PATH,
      HOME: scene.folder,
      NODE_EXTRA_CA_CERTS: scene.certificateFile,
      DENO_CERT: scene.certificateFile,
      DENO_NO_UPDATE_CHECK: '1',
      ...server.environment({ ...scene, port }),
    },
    // The service writes one line a request: to /dev/null, where it costs what writing costs, and no disk.
    stdio: ['ignore', 'ignore', stderr],
  });
  closeSync(stderr);
  const url = `http://127.0.0.1:${port}/api/private`;
  // A floor checks nothing that a token alone would show.
  const ready = new URL(server.ready?.path ?? (server.checks === 'none' ? '/api/public' : '/api/private'), url);
  const authorization = `Bearer ${scene.mintOne()}`;
  let last = 'no response';
  const accepts = async () => {
    const response = await ask(ready, authorization, server.ready?.headers);
    await response.arrayBuffer();
    last = `status ${response.status}`;
    return response.status === 200;
  };
  let reason;
  try {
    if (await running.orEnd(holdsWithin(patience, accepts), 'it')) {
      return { ...running, port, url, stop: () => endChild(running) };
    }
    reason = `${last} for a valid token within ${patience} s`;
  } catch (error) {
    reason = error.message;
  }
  await endChild(running);
  const written = readFileSync(log, 'utf8').trim().split('\n').filter(Boolean);
  const said = written.find((line) => /error/i.test(line)) ?? written.at(-1) ?? '';
  throw new Error(`${reason}${said && `: ${said.slice(0, 200)}`}`);
}

/** Expected statuses by the content of the token; all servers must match. */
const cases = {
  'a valid token': { status: 200, mint: (scene) => scene.mintOne() },
  'no token': { status: 401 },
  'a bad signature': { status: 401, mint: (scene) => spoil(scene.mintOne()) },
  'another audience': { status: 401, mint: (scene) => scene.mintOne({ aud: ['https://other.example/'] }) },
  'another issuer': { status: 401, mint: (scene) => scene.mintOne({ iss: 'https://127.0.0.1:9/' }) },
  'an end that has passed': {
    status: 401,
    mint: (scene) => scene.mintOne({ exp: Math.floor(Date.now() / 1000) - 60 }),
  },
  'no end': { status: 401, mint: (scene) => scene.mintOne({ exp: undefined }) },
  'RS384 instead of RS256': { status: 401, mint: (scene) => scene.mintOne({}, { alg: 'RS384' }) },
};

/** The signature with other characters in its middle: it has the same length, and no end that must be canonical. */
export function spoil(token) {
  const at = token.length - 100;
  const swap = (text) => [...text].map((character) => (character === 'A' ? 'B' : 'A')).join('');
  return token.slice(0, at) + swap(token.slice(at, at + 8)) + token.slice(at + 8);
}

/** Lists wrong responses of a server as sentences. */
export async function checkServer({ url }, scene) {
  const wrong = [];
  for (const [name, { status, mint }] of Object.entries(cases)) {
    const response = await ask(url, mint && `Bearer ${mint(scene)}`);
    const body = await response.text();
    if (response.status !== status) wrong.push(`${name}: ${response.status} instead of ${status}`);
    else if (status === 200 && typeof JSON.parse(body).user_id !== 'string') wrong.push(`${name}: no user_id`);
  }
  return wrong;
}

/** Headers that Node adds. */
const ownHeaders = ['date', 'connection', 'keep-alive'];

/** Returns the responses of a server by path, as raw headers and body, for a floor to copy. */
export async function copyAnswers({ url }, scene) {
  const answers = {};
  for (const path of ['/api/public', '/api/private']) {
    const asked = get(new URL(path, url), { headers: { authorization: `Bearer ${scene.mintOne()}` } });
    const [response] = await once(asked, 'response');
    const { rawHeaders } = response;
    const headers = rawHeaders.flatMap((name, i) =>
      i % 2 === 1 || ownHeaders.includes(name.toLowerCase()) ? [] : [name, rawHeaders[i + 1]],
    );
    answers[path] = { headers, body: await text(response) };
  }
  return answers;
}
