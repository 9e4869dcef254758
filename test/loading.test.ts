import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const run = promisify(execFile);

/**
 * Imports entry points of the built package, and prints each file that is loaded with its entry point. Each has its own graph of
 * modules, by a query in their URLs, as in a process that imports it alone.
 */
const program = `
  import { createRequire, register } from 'node:module';
  const hooks = \`
    import { writeSync } from 'node:fs';
    export async function resolve(specifier, context, next) {
      const resolved = await next(specifier, context);
      const entry = new URL(context.parentURL).searchParams.get('entry') ?? specifier;
      return resolved.url.startsWith('file:') ? { ...resolved, url: resolved.url + '?entry=' + entry } : resolved;
    }
    export function load(url, context, next) {
      writeSync(1, url + '\\\\n');
      return next(url, context);
    }
  \`;
  register('data:text/javascript,' + encodeURIComponent(hooks));
  for (const entry of process.argv.slice(1)) await import(entry);
  for (const path of Object.keys(createRequire(import.meta.url).cache)) console.log(path + '?entry=' + process.argv.at(-1));
`;

/** Prints every file that is loaded, and the moment in which a server listens, in the order in which they come. */
const preload = `
  import { writeSync } from 'node:fs';
  import { register } from 'node:module';
  import { Server } from 'node:net';
  const hooks = \`
    import { writeSync } from 'node:fs';
    export function load(url, context, next) {
      writeSync(1, url + '\\\\n');
      return next(url, context);
    }
  \`;
  register('data:text/javascript,' + encodeURIComponent(hooks));
  const { listen } = Server.prototype;
  Server.prototype.listen = function (...args) {
    return listen.apply(this.once('listening', () => writeSync(1, 'a server listens\\n')), args);
  };
`;

/** What the service loads until it listens, and behind that until its first fetch of the keys has failed. */
async function splitAtListening(): Promise<readonly [before: string, after: string]> {
  const child = spawn(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, 'dist/cli/main.js', 'serve'],
    {
      env: { IDP_DOMAIN: 'localhost:9', IDP_AUDIENCE: 'urn:api', HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: 'off' },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exited = once(child, 'exit');
  try {
    let output = '';
    for await (const chunk of child.stdout) {
      output += chunk;
      if (output.includes('keys_fetch_failed')) break;
    }
    const [before = '', after = '', ...more] = output.split('a server listens\n');
    expect(more).toEqual([]);
    return [before, after];
  } finally {
    child.kill('SIGTERM');
    await exited;
  }
}

/** Imports entry points in one process, and returns the packages that are loaded with each of them. */
async function listPackages(...entries: readonly string[]): Promise<Readonly<Record<string, readonly string[]>>> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program, ...entries]);
  return Object.fromEntries(
    entries.map((entry) => {
      const files = stdout.split('\n').filter((line) => line.endsWith(`?entry=${entry}`));
      expect(files.some((file) => file.includes('/dist/'))).toBe(true);
      const names = files.flatMap((file) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);
      return [entry, [...new Set(names)].toSorted()];
    }),
  );
}

const { exports, dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly dependencies: Readonly<Record<string, string>>;
};
/** Packages of each entry point but that of Nest. */
const expected: Readonly<Record<string, readonly string[]>> = {
  portcullis: ['lru-cache'],
  'portcullis/explain': [],
  'portcullis/express': [],
  'portcullis/fastify': [],
  'portcullis/fetch': [],
  'portcullis/hono': [],
  'portcullis/mcp': [],
  'portcullis/node': [],
  'portcullis/providers': [],
  'portcullis/testing': [],
};

describe('what the service loads', () => {
  it('until it listens: neither the HTTP client nor Redis; the client for the first fetch of the keys', async () => {
    const [before, after] = await splitAtListening();
    expect(before).toContain('/node_modules/valibot/');
    expect(`${before}${after}`).not.toMatch(/\/node_modules\/(?:undici|@redis|@opentelemetry|zod)\//);
  });
});

describe('what is loaded with the built package', () => {
  it('entry points: dependencies alone, no framework, no Redis, no provider, no SDK of MCP', async () => {
    expect(await listPackages(...Object.keys(expected))).toEqual(expected);
    expect(expected['portcullis']?.filter((name) => !Object.hasOwn(dependencies, name))).toEqual([]);
  });

  it('portcullis/nest: the decorators of Nest, which are functions of it, and no Express', async () => {
    const { 'portcullis/nest': packages = [] } = await listPackages('portcullis/nest');
    expect(packages).toContain('@nestjs/common');
    expect(
      packages.filter((name) => /^(?:express|fastify|hono|undici|@redis\/client|oidc-provider)$/.test(name)),
    ).toEqual([]);
  });

  it('every entry point is looked at', () => {
    const modules = Object.keys(exports).filter((subpath) => !subpath.endsWith('.json'));
    const names = modules.map((subpath) => subpath.replace('.', 'portcullis'));
    expect([...Object.keys(expected), 'portcullis/nest'].toSorted()).toEqual(names.toSorted());
  });
});
