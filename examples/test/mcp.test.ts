import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import {
  Client,
  ClientCredentialsProvider,
  type FetchLike,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { ManagedKeySet } from 'portcullis';
import { Agent, fetch as fetchOverTls } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { clientIds } from '../../src/dev/provider/defaults.ts';
import { type LocalIdp, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { runDoctor } from '../../test/cli/doctor/run-doctor.ts';
import { buildPages } from '../../test/support/packed-pages.ts';
import { takeSigningKey } from '../../test/support/rsa-keys.ts';

// The code of the page, with the packed package.
const packed = await buildPages();
const { createKeySet } = packed.load('portcullis') as typeof import('portcullis'); // it has the name of its sources
type Example = typeof import('../mcp/server.ts');
const { createApp } = packed.load('./examples/mcp/server.js') as Example; // the page has a copy of it

const page = readFileSync(new URL('../../docs/mcp.md', import.meta.url), 'utf8');
let cacheFolder: string;
let idp: LocalIdp;
let keys: ManagedKeySet;
let server: Server;
let resource: string;
let agent: Agent;
/** Paths that the client fetched. */
let fetched: string[] = [];

beforeAll(async () => {
  // The port first: the provider issues tokens for the address of the server.
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  resource = `http://localhost:${(server.address() as AddressInfo).port}/mcp`; // it listens on TCP
  cacheFolder = await mkdtemp(join(tmpdir(), 'portcullis-'));
  idp = await startLocalIdp({
    makeKey: takeSigningKey,
    port: 0,
    audience: resource,
    customClaim: 'https://portcullis.example/claim',
    cacheFolder,
  });
  const ca = readFileSync(idp.certificateFile, 'utf8');
  agent = new Agent({ connect: { ca: [...rootCertificates, ca] } });
  keys = createKeySet({ issuer: idp.issuer, ca });
  server.on('request', createApp(resource, { issuer: idp.issuer, keys }));
});
beforeEach(() => {
  fetched = [];
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  keys.close();
  await agent.close();
  await idp.close();
  await rm(cacheFolder, { recursive: true });
});

const recordingFetch = (async (url: string | URL, init?: RequestInit) => {
  const { pathname, origin } = new URL(url);
  fetched.push(`${init?.method ?? 'GET'} ${origin === new URL(resource).origin ? '' : 'idp'}${pathname}`);
  // One fetch with another's types: the two are the same standard.
  return fetchOverTls(url, { ...(init as object), dispatcher: agent }) as unknown as Promise<Response>;
}) satisfies FetchLike;

function createClient(mode: 'legacy' | 'auto') {
  const authProvider = new ClientCredentialsProvider({
    clientId: clientIds.service,
    clientSecret: readFileSync(idp.clientSecretFile, 'utf8').trim(),
    expectedIssuer: idp.issuer,
  });
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(new URL(resource), { authProvider, fetch: recordingFetch });
  return { client, transport };
}

describe('examples/mcp, on the packed package, with a client that gets only its URL and its credentials', () => {
  it.each([
    { mode: 'auto', revision: '2026-07-28' },
    { mode: 'legacy', revision: '2025-11-25' },
  ] as const)(
    'finds the provider through the metadata, gets a token, calls the tool: $revision',
    async ({ mode, revision }) => {
      const { client, transport } = createClient(mode);
      await client.connect(transport);
      expect(client.getNegotiatedProtocolVersion()).toBe(revision);
      expect(page).toContain(`\`${revision}\``);
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['read-messages']);
      const { content } = await client.callTool({ name: 'read-messages', arguments: {} });
      expect(content).toEqual([{ type: 'text', text: `No messages for ${clientIds.service}.` }]);
      await client.close();

      expect(fetched.slice(0, 2)).toEqual(['POST /mcp', 'GET /.well-known/oauth-protected-resource/mcp']);
      expect(fetched.filter((each) => each === 'POST idp/token')).toHaveLength(1);
      expect(fetched.findIndex((each) => each.startsWith('GET idp/.well-known/'))).toBe(2);
    },
  );

  it('no token → 401 whose challenge names the scope and the metadata', async () => {
    const answer = await fetch(resource, { method: 'POST' });
    expect(answer.status).toBe(401);
    const challenge = answer.headers.get('www-authenticate');
    expect(challenge).toContain('scope="read:messages"');
    const { origin } = new URL(resource);
    expect(challenge).toContain(`resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`);
  });

  it('a token without the scope → 403 whose challenge names it', async () => {
    const headers = { authorization: `Bearer ${await idp.token({ scope: 'write:messages' })}` };
    const answer = await fetch(resource, { method: 'POST', headers });
    expect(answer.status).toBe(403);
    expect(answer.headers.get('www-authenticate')).toMatch(/error="insufficient_scope".*scope="read:messages"/);
  });

  it('a token for another server → 401', async () => {
    const token = await idp.token({ scope: 'read:messages', audience: 'https://other.example/mcp' });
    const answer = await fetch(resource, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toEqual({
      error: 'invalid_token',
      error_description: 'The access token has an invalid audience.',
    });
  });

  it('doctor, as a client of it → exit 0', async () => {
    const environment = { ISSUER: idp.issuer, IDP_AUDIENCE: resource, NODE_EXTRA_CA_CERTS: idp.certificateFile };
    const { status, findings } = await runDoctor(['--from-outside', resource], environment);
    expect([status, findings.filter(({ level }) => level === 'fail' || level === 'unknown')]).toEqual([0, []]);
  });

  it('both well-known paths serve the metadata', async () => {
    const paths = ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp'];
    for (const path of paths) {
      expect(await (await fetch(new URL(path, resource))).json()).toEqual({
        resource,
        authorization_servers: [idp.issuer],
        scopes_supported: ['read:messages'],
        bearer_methods_supported: ['header'],
      });
    }
  });

  it('docs/mcp.md names the versions that were run', () => {
    const { devDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    const versionOf = (name: string): string => devDependencies[`@modelcontextprotocol/${name}`];
    expect(versionOf('server')).toBe(versionOf('client'));
    const words = page.replace(/\s+/g, ' ');
    expect(words).toContain(
      `version ${versionOf('server')} of server and client, ${versionOf('express')} of the Express adapter and ${versionOf('node')} of the Node adapter`,
    );
  });
});
