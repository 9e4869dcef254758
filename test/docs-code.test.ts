import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { compileScripts } from './support/compile-scripts.ts';
import { pages, readCodeBlocks, referencePage } from './support/pages.ts';

// The reference has declarations that the compiler wrote, and the examples of docstrings, which are compiled below.
const blocks = pages.filter((page) => page !== referencePage).flatMap(readCodeBlocks);
const isScript = ({ language }: { readonly language: string }) => /^(?:ts|js|typescript|javascript)$/.test(language);
const scripts = blocks.filter(isScript);

// That they compile and run is tested with the packed package: `examples/test/page-blocks.test.ts`.
describe('blocks of code in the documentation', () => {
  it('are found', () => {
    expect(new Set(scripts.map(({ page }) => page)).size).toBeGreaterThan(10);
    expect(new Set(blocks.map(({ language }) => language))).toEqual(
      new Set(['ts', 'js', 'json', 'console', 'text', 'python', 'haproxy', 'sh', 'yaml', 'nginx', 'go', 'java']),
    );
  });

  it('every one that is marked is a script', () => {
    expect(blocks.filter((block) => !isScript(block) && (block.given !== '' || block.fragment !== undefined))).toEqual(
      [],
    );
  });

  it('fragments are few: code for packages and programs that are not here, and what continues another block', () => {
    const fragments = scripts.flatMap(({ page, fragment }) => (fragment === undefined ? [] : [`${page}: ${fragment}`]));
    expect(fragments).toEqual([
      'docs/gate/proxies.md: code of a browser',
      'docs/getting-started.md: JavaScript for server.js, which a test runs unchanged',
      'docs/mcp.md: continues the module above, with the imports of the first example',
      'docs/migrate.md: its type of req.auth conflicts with the type of the MCP server',
      'docs/migrate.md: needs @fastify/jwt and get-jwks',
      'docs/migrate.md: needs passport, passport-jwt and jwks-rsa',
      'docs/recipes.md: imports the file of another section; a test runs it',
    ]);
  });
});

describe('examples in docstrings', () => {
  /** What stands around the examples of a file, or of all files of a folder. */
  const settings: Readonly<Record<string, string>> = {
    'adapters/express.ts': `import express from 'express'; import { answerAccessErrors, createAuthorize, createMetadata } from 'portcullis/express'; const app = express();`,
    'adapters/fastify.ts': `import fastify from 'fastify'; import { answerAccessErrors, createAuthorize, createBackchannelLogout, createMetadata } from 'portcullis/fastify'; const app = fastify();`,
    'adapters/fetch.ts': `import { createMetadata, createProtect } from 'portcullis/fetch';`,
    'adapters/hono.ts': `import { Hono } from 'hono'; import { answerAccessErrors, createAuthorize, createBackchannelLogout, createMetadata } from 'portcullis/hono'; const app = new Hono();`,
    'adapters/mcp.ts': `import { requireBearerAuth } from '@modelcontextprotocol/express'; import { toNodeHandler } from '@modelcontextprotocol/node'; import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'; import express from 'express'; import { createMcpAuth } from 'portcullis/mcp'; const [resource, issuer] = ['https://api.example/mcp', 'https://idp.example/']; const createNotes = () => new McpServer({ name: 'notes', version: '1' });`,
    'adapters/nest.ts': `import { Get, Module } from '@nestjs/common'; import type { Access } from 'portcullis'; import { CurrentAccess, PortcullisModule, Protect } from 'portcullis/nest';`,
    'adapters/nest/guard.ts': `import type { INestApplication } from '@nestjs/common'; import { createGuard } from 'portcullis/nest'; declare const app: INestApplication;`,
    'adapters/node-middleware.ts': `import express from 'express'; import { createMetadata } from 'portcullis/express'; const app = express();`,
    'adapters/events/node-events.ts': `import express from 'express'; import { createBackchannelLogout, createSignalsReceiver } from 'portcullis/express'; const app = express(); declare const secret: string; declare const token: string;`,
    'adapters/events/web-events.ts': `import { createBackchannelLogout } from 'portcullis/fetch';`,
    'adapters/node.ts': `import { createServer } from 'node:http'; import { createMetadata, createProtect, toResourceRequest, toUpgradeRequest } from 'portcullis/node';`,
  };
  const common = `import type { ResourceServer } from 'portcullis'; declare const resourceServer: ResourceServer;`;

  it('of the adapters compile', async () => {
    const names = (await readdir('src/adapters', { recursive: true }))
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `adapters/${name}`);
    const files = new Map<string, string>();
    for (const name of names) {
      const source = await readFile(`src/${name}`, 'utf8');
      for (const [, lines = ''] of source.matchAll(/@example\n((?: *\* .*\n)+?) *\*\//g)) {
        const example = lines.replace(/^ *\* /gm, '');
        files.set(`${name.replaceAll('/', '-')}-${files.size}.ts`, `${settings[name]} ${common}\n${example}`);
      }
    }
    expect(files.size).toBeGreaterThan(5);
    expect(await compileScripts(files)).toEqual([]);
  });
});
