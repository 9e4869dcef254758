import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const run = promisify(execFile);

/** Imports an entry point of the built package and prints every file that was loaded for it. */
const program = `
  import { createRequire, register } from 'node:module';
  const hooks = \`
    import { writeSync } from 'node:fs';
    export function load(url, context, next) {
      writeSync(1, url + '\\\\n');
      return next(url, context);
    }
  \`;
  register('data:text/javascript,' + encodeURIComponent(hooks));
  await import(process.argv[1]);
  for (const path of Object.keys(createRequire(import.meta.url).cache)) console.log(path);
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

async function listPackages(name: string): Promise<readonly string[]> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program, name]);
  const files = stdout.split('\n').filter((line) => line !== '');
  expect(files.some((file) => file.includes('/dist/'))).toBe(true);
  const names = files.flatMap((file) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);
  return [...new Set(names)].toSorted();
}

const { exports, dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly dependencies: Readonly<Record<string, string>>;
};
const core = ['lru-cache'];
const expected: Readonly<Record<string, readonly string[]>> = {
  '.': core,
  './explain': [],
  './express': [],
  './fastify': [],
  './fetch': [],
  './hono': [],
  './node': [],
  './providers': [],
  './testing': [],
};

describe('what the service loads', () => {
  it('until it listens: neither the HTTP client nor Redis; the client for the first fetch of the keys', async () => {
    const [before, after] = await splitAtListening();
    expect(before).toContain('/node_modules/valibot/');
    expect(`${before}${after}`).not.toMatch(/\/node_modules\/(?:undici|@redis|@opentelemetry|zod)\//);
  });
});

describe('what is loaded with the built package', () => {
  it('portcullis: dependencies alone, no framework, no Redis, no provider', async () => {
    expect(await listPackages('portcullis')).toEqual(core);
    expect(core.filter((name) => !Object.hasOwn(dependencies, name))).toEqual([]);
  });

  it.each(Object.entries(expected).filter(([subpath]) => subpath !== '.'))(
    '%s: its framework is not loaded by it, and of the dependencies only %j',
    async (subpath, packages) => expect(await listPackages(subpath.replace('.', 'portcullis'))).toEqual(packages),
  );

  it('./nest: the decorators of Nest, which are functions of it, and no Express', async () => {
    const packages = await listPackages('portcullis/nest');
    expect(packages).toContain('@nestjs/common');
    expect(
      packages.filter((name) => /^(?:express|fastify|hono|undici|@redis\/client|oidc-provider)$/.test(name)),
    ).toEqual([]);
  });

  it('./mcp: no package of the MCP SDK', async () => expect(await listPackages('portcullis/mcp')).toEqual([]));

  it('every entry point is looked at', () => {
    const modules = Object.keys(exports).filter((subpath) => !subpath.endsWith('.json'));
    expect([...Object.keys(expected), './mcp', './nest'].toSorted()).toEqual(modules.toSorted());
  });
});
