import { execFile } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { beforeAll, describe, expect, it } from 'vitest';
import { installPacked, type PackedPackage } from '../support/packed-package.ts';

const run = promisify(execFile);

/** The package of a monorepo that has its own copy of Portcullis. */
const auth = `
  import { AccessError, createResourceServer } from 'portcullis';
  import { createProtect } from 'portcullis/fetch';
  import { createTestIssuer } from 'portcullis/testing';
  export const issuer = createTestIssuer();
  export const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
  export { AccessError, createProtect };
`;

/** Reports what the copy of the application does with a server, and with errors, of \`auth\`. */
const probe = `
  const url = 'https://api.test/messages';
  const metadata = { resource: 'https://api.test/', authorizationServers: ['https://idp.test/'] };
  const attempt = async (work) => {
    try {
      return await work();
    } catch (error) {
      return error.name + ': ' + error.message;
    }
  };
  const tell = (response) => response.status + ' ' + response.headers.get('www-authenticate');

  export async function probe(load, { issuer, server, AccessError, createProtect }) {
    const wrapper = ['createProtect', 'createMetadata'];
    const middleware = ['createAuthorize', 'createMetadata', 'answerAccessErrors'];
    const takers = {
      express: middleware,
      fastify: middleware,
      fetch: wrapper,
      hono: middleware,
      mcp: ['createMcpAuth'],
      nest: ['createGuard', 'createMetadata'],
      node: wrapper,
    };
    const found = { takers: {} };
    for (const [adapter, names] of Object.entries(takers)) {
      const module = await load('portcullis/' + adapter);
      for (const name of names) {
        const options = /Metadata|Mcp/.test(name) ? metadata : {};
        found.takers[adapter + ' ' + name] = await attempt(() => module[name](server, options) && 'created');
      }
    }
    const { explain } = await load('portcullis/explain');
    const { expectRefused } = await load('portcullis/testing');
    found.takers.explain = await attempt(async () => (await explain(server, new Request(url))).verdict);
    found.takers.expectRefused = await attempt(() => expectRefused(server, new Request(url), 'missing_credentials'));

    const fetch = await load('portcullis/fetch');
    const admitted = () => new Response('the handler ran');
    const withoutToken = new Request(url);
    found.noToken = await attempt(async () => tell(await fetch.createProtect(server)({}, admitted)(withoutToken)));

    const core = await load('portcullis');
    const own = core.createResourceServer({ issuers: [issuer], audience: issuer.audience });
    const protect = fetch.createProtect(own);
    const call = async (handler, policy = {}) =>
      attempt(async () => tell(await protect(policy, handler)(new Request(url, { headers: issuer.headers() }))));
    const fail = () => {
      throw new AccessError('insufficient_scope', { scopes: ['write:messages'] });
    };
    found.own = await call(admitted);
    found.thrown = await call(fail);
    found.bySchema = await call(admitted, { claims: { '~standard': { version: 1, vendor: 'test', validate: fail } } });
    const error = await server.authorize(withoutToken).catch((refused) => refused);
    found.recognised = [error instanceof core.AccessError, error.reason];
    found.insideAuth = tell(await createProtect(server)({}, admitted)(withoutToken));

    // As a wrapper, or a mock, that passes the results of the other copy on.
    own.judge = server.judge;
    found.foreignRefusal = tell(await protect({}, admitted)(withoutToken));
    found.foreignAccess = await call(admitted);
    return found;
  }
`;

/** Modules that have a server: of another copy, of another copy in a bundle, and of the copy of the application. */
const servers = { copies: './auth/server.js', bundle: './auth-bundle.js', same: './server.js' };
type Found = Readonly<Record<keyof typeof servers, Readonly<Record<string, unknown>>>>;

/** Both load the modules of the servers one after the other, and report on each. */
const loads = { import: 'import(name)', require: 'require(name)' };
const script = (load: string) => `
  const load = async (name) => ${load};
  (async () => {
    const { probe } = await load('./probe.js');
    const found = {};
    for (const [name, path] of Object.entries(${JSON.stringify(servers)})) found[name] = await probe(load, await load(path));
    console.log(JSON.stringify(found));
  })();
`;

let packed: PackedPackage;

beforeAll(async () => {
  packed = await installPacked('two-copies');
  const { folder, write } = packed;
  await cp(join(folder, '../node_modules/portcullis'), join(folder, 'auth/node_modules/portcullis'), {
    recursive: true,
  });
  await write('auth/server.js', auth);
  await write('server.js', auth);
  await write('probe.js', probe);
  const bundle = await rolldown({
    input: join(folder, 'auth/server.js'),
    platform: 'node',
    external: /^(?!portcullis|[./#])/, // packages other than the copy of Portcullis and its own imports
  });
  await bundle.write({ file: join(folder, 'auth-bundle.js'), format: 'esm', codeSplitting: false });
  await bundle.close();
});

describe.each(Object.entries(loads))('loaded by %s', (by, load) => {
  let all: Found;
  beforeAll(async () => {
    await packed.write(`${by}.cjs`, script(load));
    const { stdout } = await run(process.execPath, [join(packed.folder, `${by}.cjs`)]);
    all = JSON.parse(stdout);
  });

  describe.each(['copies', 'bundle'] as const)('a server of another copy, %s', (name) => {
    let found: Found[typeof name];
    beforeAll(() => {
      found = all[name];
    });

    it('every function that takes a server → TypeError that names two copies and how to find them', () => {
      const outcomes = Object.entries(found['takers'] as Record<string, string>); // as the probe writes it
      expect(outcomes).toHaveLength(18);
      for (const [taker, outcome] of outcomes) {
        expect(outcome, taker).toMatch(/^TypeError: \w+: .*two copies.*`npm ls portcullis`/);
        expect(outcome, taker).toContain(taker.split(' ').at(-1));
      }
    });

    it('no token → the handler does not run', () => expect(found['noToken']).toMatch(/^TypeError: createProtect: /));

    it('a server of this copy that returns results of the other: access → 500, a refusal → 401', () =>
      expect(found).toMatchObject({
        foreignAccess: '500 null',
        foreignRefusal: expect.stringMatching(/^401 Bearer /),
      }));

    it('each copy alone → admits with a token, refuses without', () =>
      expect(found).toMatchObject({ own: '200 null', insideAuth: expect.stringMatching(/^401 Bearer /) }));

    it('AccessError of the other copy, thrown by a handler or a schema → that refusal', () => {
      expect(found).toMatchObject({
        recognised: [true, 'missing_credentials'],
        thrown: expect.stringMatching(/^403 Bearer .*error="insufficient_scope".*scope="write:messages"/),
        bySchema: expect.stringMatching(/^403 Bearer .*error="insufficient_scope".*scope="write:messages"/),
      });
    });
  });

  it('one copy → its servers are accepted', () => {
    const { takers, noToken } = all.same;
    expect(noToken).toMatch(/^401 Bearer /);
    expect(Object.values(takers as object).filter((outcome) => outcome !== 'created')).toMatchObject([
      'refused',
      { name: 'AccessError' },
    ]);
  });
});
