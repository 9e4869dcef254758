import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { pages, readCodeBlocks, referencePage } from './support/pages.ts';

const run = promisify(execFile);
const root = process.cwd();

// The reference has declarations that the compiler wrote, and the examples of docstrings, which are compiled below.
const blocks = pages.filter((page) => page !== referencePage).flatMap(readCodeBlocks);
const isScript = ({ language }: { readonly language: string }) => /^(?:ts|js|typescript|javascript)$/.test(language);
const scripts = blocks.filter(isScript);

/** Compiles modules as this repository compiles its own, and lists what is wrong with them. */
async function compile(modules: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const folder = await mkdtemp(join(root, '.docs-'));
  try {
    for (const [name, text] of modules) await writeFile(join(folder, name), `${text}\nexport {};\n`);
    const compilerOptions = {
      allowJs: true,
      noUnusedLocals: false,
      noUnusedParameters: false,
      experimentalDecorators: true,
    };
    const project = { extends: '../tsconfig.json', compilerOptions, include: ['*'], exclude: [] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(project));
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    return await run(process.execPath, [compiler, '-p', folder]).then(
      () => [],
      ({ stdout }: { readonly stdout: string }) => stdout.split('\n').filter((line) => line !== ''),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

// That they compile and run is tested with the packed package: `examples/packed-pages.test.ts`.
describe('blocks of code in the documentation', () => {
  it('are found', () => {
    expect(new Set(scripts.map(({ page }) => page)).size).toBeGreaterThan(10);
    expect(new Set(blocks.map(({ language }) => language))).toEqual(
      new Set(['ts', 'js', 'json', 'console', 'text', 'python', 'haproxy']),
    );
  });

  it('every one that is marked is a script', () => {
    expect(blocks.filter((block) => !isScript(block) && (block.given !== '' || block.fragment !== undefined))).toEqual(
      [],
    );
  });

  it('fragments are few: what is written for packages that are not here', () => {
    const fragments = scripts.flatMap(({ page, fragment }) => (fragment === undefined ? [] : [`${page}: ${fragment}`]));
    expect(fragments).toEqual([
      'docs/migrate/from-express-oauth2-jwt-bearer.md: its type of req.auth and that of the MCP server exclude each other',
      'docs/migrate/from-fastify-jwt.md: needs @fastify/jwt and get-jwks',
      'docs/migrate/from-passport-jwt.md: needs passport, passport-jwt and jwks-rsa',
    ]);
  });
});

describe('examples in docstrings', () => {
  /** What stands around the examples of a file, or of all files of a folder. */
  const settings: Readonly<Record<string, string>> = {
    'adapters/express.ts': `import express from 'express'; import { accessOf, answerAccessErrors, createAuthorize, createMetadata, createProtect } from 'portcullis/express'; const app = express();`,
    'adapters/fastify.ts': `import fastify from 'fastify'; import { accessOf, answerAccessErrors, createAuthorize, createMetadata, createProtect } from 'portcullis/fastify'; const app = fastify();`,
    'adapters/fetch.ts': `import { accessOf, createAuthorize, createMetadata, createProtect } from 'portcullis/fetch';`,
    'adapters/hono.ts': `import { Hono } from 'hono'; import { answerAccessErrors, createAuthorize, createMetadata, createProtect } from 'portcullis/hono'; const app = new Hono();`,
    'adapters/mcp.ts': `import { requireBearerAuth } from '@modelcontextprotocol/express'; import { toNodeHandler } from '@modelcontextprotocol/node'; import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'; import express from 'express'; import { createMcpAuth } from 'portcullis/mcp'; const app = express(); const [resource, issuer] = ['https://api.example/mcp', 'https://idp.example/']; const createNotes = () => new McpServer({ name: 'notes', version: '1' });`,
    'adapters/nest.ts': `import { Get, type INestApplication } from '@nestjs/common'; import type { Access } from 'portcullis'; import { createGuard, createMetadata, CurrentAccess, Protect } from 'portcullis/nest'; declare const app: INestApplication;`,
    'adapters/node.ts': `import { createServer } from 'node:http'; import { accessOf, createAuthorize, createMetadata, createProtect, toResourceRequest } from 'portcullis/node';`,
  };
  const common = `import type { ResourceServer } from 'portcullis'; declare const resourceServer: ResourceServer;`;

  it('of the adapters compile', async () => {
    const names = (await readdir('src/adapters')).map((name) => `adapters/${name}`);
    const files = new Map<string, string>();
    for (const name of names) {
      const source = await readFile(`src/${name}`, 'utf8');
      for (const [, lines = ''] of source.matchAll(/@example\n((?: *\* .*\n)+?) *\*\//g)) {
        const example = lines.replace(/^ *\* /gm, '');
        files.set(`${name.replaceAll('/', '-')}-${files.size}.ts`, `${settings[name]} ${common}\n${example}`);
      }
    }
    expect(files.size).toBeGreaterThan(5);
    expect(await compile(files)).toEqual([]);
  }, 120_000);
});
