// Compares the time of two builds to validate a token: `node tools/scripts/pair-judgement.js OTHER` (a folder with
// dist/; default: this build). Each round is a process; the builds alternate, and only processor time counts.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { median } from '../shared/statistics.js';

const [, script = '', other = '.', rounds = '8', only] = process.argv;

/** Returns µs of processor time to validate a token, by case: the median of many samples. @param {string} folder */
async function measure(folder) {
  /** @type {(path: string) => Promise<any>} */
  const load = (path) => import(pathToFileURL(`${folder}/dist/${path}`).href);
  const { createResourceServer } = await load('index.js');
  const { createTestIssuer } = await load('testing/index.js');
  const issuer = createTestIssuer();
  const client = issuer.dpopClient();
  const policy = { scopes: ['read:messages'] };
  const claims = { scope: 'openid read:messages' };
  const url = 'http://api.example/messages';
  /** @param {Record<string, string>} headers */
  const request = (headers) => ({
    method: 'GET',
    url,
    headers: { get: (/** @type {string} */ name) => headers[name] ?? null },
  });
  /** @param {object} options */
  const open = (options) => createResourceServer({ issuers: [issuer], audience: issuer.audience, ...options });
  const cold = open({ tokenCache: 'off' });
  const warm = open({});
  const bearer = Array.from({ length: 400 }, () =>
    request({ authorization: `Bearer ${issuer.token({ ...claims, jti: randomUUID() })}` }),
  );
  const bound = client.token(claims);
  const prove = () =>
    request({ authorization: `DPoP ${bound}`, dpop: client.proof({ method: 'GET', url, token: bound }) });
  /** @param {any} server @param {readonly object[]} requests */
  const judgeAll = async (server, requests) => {
    for (const each of requests)
      if ((await server.judge(each, policy)).claims === undefined) throw new Error('refused');
  };
  for (let i = 0; i < 3; i++) await judgeAll(warm, bearer);
  /** @type {Record<string, number[]>} */
  const samples = { cold: [], warm: [], proof: [] };
  for (let round = 0; round < 100; round++) {
    const proofs = round % 4 === 0 ? Array.from({ length: 100 }, prove) : [];
    for (const [name, server, requests] of /** @type {const} */ ([
      ['cold', cold, round % 4 === 0 ? bearer : []],
      ['warm', warm, [...bearer, ...bearer, ...bearer]],
      ['proof', warm, proofs],
    ])) {
      if (requests.length === 0) continue;
      const before = process.cpuUsage();
      await judgeAll(server, requests);
      const { user, system } = process.cpuUsage(before);
      samples[name]?.push((user + system) / requests.length);
    }
  }
  return Object.fromEntries(Object.entries(samples).map(([name, all]) => [name, median(all.slice(all.length >> 2))]));
}

if (only !== undefined) {
  console.log(JSON.stringify(await measure(only)));
} else {
  /** @type {Record<string, number[]>[]} */
  const found = [{}, {}];
  for (let round = 0; round < Number(rounds); round++) {
    for (const [index, folder] of [process.cwd(), other].entries()) {
      const output = execFileSync(process.execPath, [script, other, rounds, folder], { encoding: 'utf8' });
      const costs = found[index] ?? {};
      for (const [name, cost] of Object.entries(JSON.parse(output))) costs[name] = [...(costs[name] ?? []), cost];
    }
  }
  const [ours = {}, theirs = {}] = found;
  for (const [name, costs] of Object.entries(ours)) {
    const least = [costs, theirs[name] ?? []].map((all) => Math.min(...all));
    const [here = Number.NaN, there = Number.NaN] = least;
    console.log(
      `${name.padEnd(6)} here ${here.toFixed(2)} µs, there ${there.toFixed(2)} µs, there : here ${(there / here).toFixed(3)}`,
    );
  }
}
