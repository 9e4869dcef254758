import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { build } from 'vite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { libraryRuntimes } from '../../tools/bench/runtimes.js';
import { useFolder } from '../support/folder.ts';
import { useTestProvider } from '../support/test-provider.ts';

// Part of `npm run runtimes -- workerd` alone.

const { binary } = libraryRuntimes.workerd;
const provider = await useTestProvider();
const folder = useFolder();
const library = JSON.stringify(new URL('../../dist/index.js', import.meta.url).href);
/** The first recipe of the section, without its import. */
const recipe = /^## Keys without a fetch$[\s\S]*?```ts\nimport .* from 'portcullis';\n([\s\S]*?)```/m.exec(
  readFileSync('docs/library.md', 'utf8'),
)?.[1];

describe('keys of a cache', () => {
  it('recipe of Workers KV → a new isolate verifies its first token without a fetch', async () => {
    const stored = new Map<string, string>();
    const kv = createServer(async (request, response) => {
      const key = decodeURIComponent(new URL(`${request.url}`, 'http://kv').pathname.slice(1));
      const value = stored.get(key);
      if (request.method === 'PUT') stored.set(key, await text(request));
      else if (value === undefined) response.statusCode = 404;
      response.end(value);
      kv.emit(`${request.method}`);
    });
    await once(kv.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void kv.close());
    const { port } = kv.address() as AddressInfo; // a TCP server that listens has an address of this shape
    writeFileSync(
      join(folder, 'worker.ts'),
      `import { waitUntil } from 'cloudflare:workers';
import { createResourceServer as create } from ${library};
let env, server;
const createResourceServer = ({ keyCache }) => create({ keyCache, issuer: env.ISSUER, audience: env.AUDIENCE });
${recipe}
export default { async fetch({ url, method, headers }, bindings) {
  env = bindings;
  server ??= open(env.KEYS, waitUntil);
  const outcome = await server.judge({ url, method, headers });
  return new Response(outcome.reason ?? 'admitted');
} };`,
    );
    await build({
      ...{ configFile: false, root: folder, logLevel: 'error', resolve: { conditions: ['workerd', 'worker'] } },
      ssr: { target: 'webworker', noExternal: true },
      build: {
        ...{ outDir: folder, emptyOutDir: false, minify: false, ssr: join(folder, 'worker.ts') },
        rolldownOptions: { output: { codeSplitting: false }, external: [/^node:/, /^cloudflare:/] },
      },
    });
    const binding = (name: string, value: string) => `(name = "${name}", text = ${JSON.stringify(value)})`;
    const ca = JSON.stringify(readFileSync(provider.caFile, 'utf8'));
    writeFileSync(
      join(folder, 'worker.capnp'),
      `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "kv", external = (address = "127.0.0.1:${port}", http = ())),
    (name = "internet", network = (allow = ["private"], tlsOptions = (trustedCertificates = [${ca}]))),
  ],
  sockets = [(name = "app", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")], compatibilityDate = "2026-11-01",
  bindings = [(name = "KEYS", kvNamespace = "kv"), ${binding('ISSUER', provider.issuer)}, ${binding('AUDIENCE', provider.audience)}],
);`,
    );
    const fetches = provider.requests('discovery');
    const call = async () => {
      const child = spawn(binary, ['serve', '--control-fd=3', join(folder, 'worker.capnp')], {
        stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      const [line] = await once(child.stdio[3] as Readable, 'data');
      const headers = { authorization: `Bearer ${await provider.sign()}` };
      return (await fetch(`http://127.0.0.1:${JSON.parse(line).port}/`, { headers })).text();
    };
    const written = once(kv, 'PUT');
    expect(await call()).toBe('admitted');
    await written;
    expect(await call()).toBe('admitted');
    expect(provider.requests('discovery') - fetches).toBe(1);
  });
});
