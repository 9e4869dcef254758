import { createServer } from 'node:http';
import express, { type Handler } from 'express';
import { beforeAll, describe, expect, it } from 'vitest';
import { createAuthorize } from '../../src/adapters/express.ts';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer } from '../../src/testing/test-issuer.ts';
import { tokenParts } from '../catalogue/rows.ts';
import { openWorld } from '../catalogue/world.ts';
import { send } from '../support/http-client.ts';
import { listen } from '../support/listening.ts';
import { makeCertificate } from './client-certificate.ts';
import { admittedBefore, migrationInputs } from './differences.ts';
import type { Input, World } from './input.ts';
import { original } from './original.ts';

const issuer = createTestIssuer({ issuer: 'https://issuer.example.com/', audience: 'https://api/' });
const inputs = migrationInputs.flatMap(({ inputs }) => inputs);
let world: Omit<World, 'url'>;
let origin: string;

/** Mounts the original like its users. */
function mountOriginal({ before = () => ({}) }: Input): Handler[] {
  const { options, behind } = before({ ...world, url: '' });
  const auth = original.auth({ issuer: issuer.issuer, audience: issuer.audience, publicKey: issuer.jwks, ...options });
  const answer: Handler = (request, response) => {
    response.json({ known: Reflect.get(request, 'auth') !== undefined });
  };
  return [auth, ...(behind === undefined ? [] : [behind]), answer];
}

/** Mounts Portcullis like the migration page. */
function mountOurs({ after = {} }: Input): Handler[] {
  const { dpop, ...options } = after.options ?? {};
  const server = createResourceServer({
    issuer: issuer.issuer,
    keys: issuer.keys,
    audience: issuer.audience,
    // There was no start before which proofs may have been used.
    dpop: { replay: createMemoryReplayStore({ since: 0 }), ...dpop },
    ...options,
  });
  const authorize = createAuthorize(server);
  const { policy = {} } = after;
  return [
    after.credentials === 'optional' ? authorize.optional(policy) : authorize(policy),
    (request, response) => {
      response.json({ known: authorize.findAccess(request) !== undefined });
    },
  ];
}

beforeAll(async () => {
  const [certificate, otherCertificate] = await Promise.all([makeCertificate('one'), makeCertificate('two')]);
  world = { issuer, original, certificate, otherCertificate };
  const app = express();
  app.set('env', 'test'); // no stack traces on the terminal
  app.use(express.urlencoded({ extended: false }), express.json());
  for (const [index, input] of inputs.entries()) {
    app.all(`/before/input/${index}`, ...mountOriginal(input));
    app.all(`/after/input/${index}`, ...mountOurs(input));
  }
  const listening = await listen(createServer(app));
  origin = listening.origin;
  return listening.close;
});

/** Returns the status, with the error code of a challenge. */
async function ask(side: 'before' | 'after', input: Input): Promise<string> {
  const path = `/${side}/input/${inputs.indexOf(input)}`;
  const { query = '', ...call } = input.call({ ...world, url: `${origin}${path}` });
  for (let made = 1; made < (input.times ?? 1); made++) await send(origin, `${path}${query}`, call);
  const { status, headers, body } = await send(origin, `${path}${query}`, call);
  if (status === 200) return JSON.parse(body).known ? '200' : '200, nobody known';
  if (status !== 401 && status !== 403) return `${status}`;
  const [, code] = /error="([^"]+)"/.exec(headers.get('www-authenticate') ?? '') ?? [];
  return code === undefined ? `${status}` : `${status} ${code}`;
}

describe.each(migrationInputs)('$title ($source)', ({ inputs }) => {
  it.each(inputs)('$name: before → $was', async (input) => expect(await ask('before', input)).toBe(input.was));

  it.each(inputs)('$name: now as the table says', async (input) =>
    expect(await ask('after', input)).toBe(input.is?.[0] ?? input.was),
  );
});

it('a difference is one', () => {
  expect(inputs.filter(({ was, is }) => is?.[0] === was)).toEqual([]);
  expect(
    new Set(migrationInputs.flatMap(({ title, inputs }) => inputs.map(({ name }) => `${title}: ${name}`))).size,
  ).toBe(inputs.length);
});

it('tokens of the catalogue, which are refused here → refused before, except by these reasons', async () => {
  const catalogue = await openWorld({ services: [] });
  const { issuer, audience } = catalogue.provider;
  const keys = Object.values(catalogue.keys).map(({ jwk }) => jwk);
  const auth = original.auth({ issuer, audience, publicKey: { keys } });
  // Without sockets: it copies parts of some tokens to a header, which Node refuses to send.
  const isAdmitted = (token: string): Promise<boolean> => {
    const headers = { host: 'api.test', authorization: `Bearer ${token}` };
    const request = {
      method: 'GET',
      url: '/',
      query: {},
      protocol: 'https',
      is: () => false,
      get: () => 'api.test',
      headers,
    };
    return new Promise((resolve) => auth(request as never, {} as never, (error) => resolve(error === undefined)));
  };
  expect(await isAdmitted(catalogue.mint())).toBe(true);
  const admitted = new Set<string | null>();
  for (const row of tokenParts.flatMap(([, rows]) => rows)) {
    const token = row.make(catalogue);
    if (typeof token !== 'string' || row.service !== 'default') continue;
    if (await isAdmitted(token)) admitted.add(row.reason);
  }
  expect([...admitted].toSorted()).toEqual(admittedBefore);
  await catalogue.close();
});
