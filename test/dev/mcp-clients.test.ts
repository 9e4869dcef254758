import { readFileSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import * as sdk2 from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { Agent, fetch as fetchOverTls } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMcpAuth } from '../../src/adapters/mcp.ts';
import { createKeySet, type ManagedKeySet } from '../../src/core/keys/key-set.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { type LocalIdp, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { findFreePort, listen, stop } from '../../tools/shared/network.js';
import { createDpopClient } from '../support/dpop-client.ts';
import { useFolder } from '../support/folder.ts';
import { idpOptions } from '../support/local-idp.ts';
import { type ServiceProcess, startService } from '../support/service-process.ts';

/** Opens an MCP server that knows nothing of OAuth. */
function createMessages(): McpServer {
  const server = new McpServer({ name: 'messages', version: '1.0.0' });
  for (const name of ['read-messages', 'delete-messages']) {
    server.registerTool(name, { description: name }, () => ({ content: [{ type: 'text', text: `${name}: done` }] }));
  }
  return server;
}

/** A protected server, and the provider whose audience is its URL. */
interface Scene {
  readonly resource: string;
  readonly idp: LocalIdp;
  readonly fetch: typeof fetch;
  /** Methods and paths of the requests of clients, with statuses. */
  readonly fetched: string[];
  close(): Promise<void>;
}

const base = useFolder();

/** Starts the provider and, by `protect`, the protection of the MCP server. */
async function startScene(kind: 'library' | 'gate'): Promise<Scene> {
  const port = await findFreePort();
  const resource = `http://localhost:${port}/mcp`;
  const cacheFolder = await mkdtemp(join(base, 'idp-'));
  const idp = await startLocalIdp({ ...idpOptions, audience: resource, cacheFolder });
  const ca = readFileSync(idp.certificateFile, 'utf8');
  const agent = new Agent({ connect: { ca: [...rootCertificates, ca] } });
  const handle = toNodeHandler(createMcpHandler(createMessages));
  const handler = (request: IncomingMessage, response: ServerResponse, body?: unknown) =>
    handle(request as Parameters<typeof handle>[0], response, body); // a server sets method and url
  let keys: ManagedKeySet | undefined;
  let gate: ServiceProcess | undefined;
  const servers = [createServer((request, response) => void handler(request, response))];
  const upstreamPort = await listen(servers[0]);
  if (kind === 'gate') {
    const rules = join(cacheFolder, 'rules.json');
    const tools = { 'delete-*': { scopes: ['write:messages'] }, '*': {} };
    const rule = { id: 'mcp', path: '/mcp', scopes: ['read:messages'], mcp: { tools } };
    const issuers = { idp: { issuer: idp.issuer, audience: resource } };
    await writeFile(rules, JSON.stringify({ issuers, rules: [rule] }));
    const args = ['--mcp', '--rules', rules, '--upstream', `http://127.0.0.1:${upstreamPort}`];
    const environment = { PORT: String(port), NODE_EXTRA_CA_CERTS: idp.certificateFile };
    gate = await startService({ command: 'gate', args, environment });
  } else {
    keys = createKeySet({ issuer: idp.issuer, ca });
    const server = createResourceServer({ issuers: [{ issuer: idp.issuer, keys }], audience: resource });
    const auth = createMcpAuth(server, {
      resource,
      authorizationServers: [idp.issuer],
      policy: { scopes: ['read:messages'] },
      tools: { 'delete-*': { scopes: ['write:messages'] }, '*': {} },
    });
    const listener: RequestListener = (request, response) =>
      auth.serveMetadata(request, response, () =>
        auth.protect(request, response, () => {
          void handler(request, response, (request as { readonly body?: unknown }).body);
        }),
      );
    const own = createServer(listener);
    servers.push(own);
    await listen(own, port);
  }
  const fetched: string[] = [];
  const fetchAndNote = async (url: string | URL, init: RequestInit = {}) => {
    // One fetch with another's types: the two are the same standard.
    const response = (await fetchOverTls(url, { ...(init as object), dispatcher: agent })) as unknown as Response;
    const { pathname, origin } = new URL(url);
    const isOwn = origin === new URL(resource).origin;
    fetched.push(`${init.method ?? 'GET'} ${isOwn ? '' : 'idp'}${pathname} ${response.status}`);
    // SDK 1.x recognises only the Response of this process.
    const body = [204, 303].includes(response.status) ? null : response.body;
    return new Response(body, { status: response.status, headers: [...response.headers] });
  };
  return {
    ...{ resource, idp, fetched, fetch: fetchAndNote as typeof fetch },
    async close() {
      await Promise.all(servers.map(stop));
      await gate?.stop();
      keys?.close();
      await agent.close();
      await idp.close();
    },
  };
}

/** A browser that signs in and allows what is requested, with one click on each page. Returns the callback. */
function createBrowser({ fetch: get }: Scene) {
  const jar = new Map<string, { readonly path: string; readonly value: string }>();
  const pages: string[] = [];
  const visit = async (url: URL, init: RequestInit = {}): Promise<URL | undefined> => {
    const cookies = [...jar].filter(([, { path }]) => url.pathname.startsWith(path));
    const cookie = cookies.map(([name, { value }]) => `${name}=${value}`).join('; ');
    const headers = { accept: 'text/html', cookie, ...init.headers };
    const response = await get(url, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      jar.set(name, { value, path: /;\s*path=([^;]*)/i.exec(line)?.[1] ?? '/' });
    }
    const location = response.headers.get('location');
    if (location !== null) return new URL(location, url);
    pages.push(await response.text());
    return undefined;
  };
  return {
    pages,
    async authorize(from: URL): Promise<URL> {
      let next = from;
      for (let clicks = 0; clicks < 20 && next.protocol === 'https:'; clicks++) {
        const shown = await visit(next);
        const { origin } = next;
        const clicked = shown ?? (await visit(next, { method: 'POST', headers: { origin } }));
        if (clicked === undefined) throw new Error(pages.at(-1));
        next = clicked;
      }
      return next;
    },
  };
}

/** Storage of a client, and a browser that follows its redirects: for SDK 1.x and 2.x. */
function createProvider(scene: Scene, refreshes: boolean, dpop?: sdk2.DpopSession) {
  const browser = createBrowser(scene);
  const stored: Record<string, unknown> = {};
  let callback: URL | undefined;
  const provider = {
    redirectUrl: 'http://127.0.0.1:7777/callback',
    clientMetadata: {
      client_name: 'test',
      redirect_uris: ['http://127.0.0.1:7777/callback'],
      grant_types: ['authorization_code', ...(refreshes ? ['refresh_token'] : [])],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    },
    clientInformation: () => stored['client'],
    saveClientInformation: (client: unknown) => Object.assign(stored, { client }),
    tokens: () => stored['tokens'],
    saveTokens: (tokens: unknown) => Object.assign(stored, { tokens }),
    saveCodeVerifier: (verifier: unknown) => Object.assign(stored, { verifier }),
    codeVerifier: () => stored['verifier'],
    saveDiscoveryState: (state: unknown) => Object.assign(stored, { discovery: state }),
    discoveryState: () => stored['discovery'],
    async redirectToAuthorization(url: URL) {
      callback = await browser.authorize(url);
    },
    ...(dpop !== undefined && { dpop: () => dpop }),
  };
  return { provider, stored, browser, takeCallback: () => callback };
}

type Stored = Readonly<{ tokens?: { readonly scope?: string; readonly refresh_token?: string } }>;

/** A fetch for SDK 1.x, which has no DPoP: it adds a proof to token requests, and to requests with a bound token. */
function proveEach({ fetch: get }: Scene, holder: ReturnType<typeof createDpopClient>) {
  const nonces = new Map<string, string>();
  const prove = async (url: string | URL, init: RequestInit = {}, isRepeated = false): Promise<Response> => {
    const { origin, pathname } = new URL(url);
    const headers = new Headers(init.headers);
    const token = headers.get('authorization')?.replace(/^Bearer /, '');
    const nonce = nonces.get(origin);
    const call = { url: String(url), method: init.method ?? 'GET', ...(nonce !== undefined && { nonce }) };
    if (pathname === '/token') headers.set('dpop', holder.prove('', call));
    else if (token !== undefined) {
      headers.set('authorization', `DPoP ${token}`);
      headers.set('dpop', holder.prove(token, call));
    }
    const response = await get(url, { ...init, headers: Object.fromEntries(headers) });
    const next = response.headers.get('dpop-nonce');
    if (next !== null) nonces.set(origin, next);
    const needsNonce = [400, 401].includes(response.status) && next !== null && next !== nonce && headers.has('dpop');
    return needsNonce && !isRepeated ? prove(url, init, true) : response;
  };
  return (url: string | URL, init?: RequestInit) => prove(url, init);
}

/** Calls a tool like an application: finishes the authorization, and calls again. */
async function callTwice<T>(call: () => Promise<T>, finish: () => Promise<void>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!/unauthorized/i.test(`${(error as Error).name} ${(error as Error).message}`)) throw error;
    await finish();
    return call();
  }
}

describe.each(['library', 'gate'] as const)('%s, with real clients', (kind) => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene(kind);
  });
  afterAll(() => scene?.close());

  const done = (name: string) => [{ type: 'text', text: `${name}: done` }];

  it.each([
    ['Bearer', 'legacy'],
    ['Bearer', 'auto'],
    ['DPoP', 'auto'],
  ] as const)(
    'SDK 2.x, %s, %s → 401, metadata, registration, consent, tool; 403, new token, tool; refresh',
    async (scheme, mode) => {
      const dpop = scheme === 'DPoP' ? await sdk2.DpopSession.create() : undefined;
      const { provider, stored, browser, takeCallback } = createProvider(scene, true, dpop);
      const authProvider = provider as unknown as sdk2.OAuthClientProvider; // it stores what it is given
      const open = () =>
        new sdk2.StreamableHTTPClientTransport(new URL(scene.resource), { authProvider, fetch: scene.fetch });
      scene.fetched.length = 0;
      let transport = open();
      let client = new sdk2.Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
      const finish = async () => transport.finishAuth(takeCallback()?.searchParams ?? new URLSearchParams());
      await callTwice(
        () => client.connect(transport),
        async () => {
          await finish();
          transport = open();
          client = new sdk2.Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
        },
      );
      expect((stored as Stored).tokens).toMatchObject({ scope: 'read:messages', token_type: scheme });
      expect(browser.pages.join()).toMatch(/Allow access[\s\S]*<li>read:messages<\/li>/);
      expect((await client.callTool({ name: 'read-messages', arguments: {} })).content).toEqual(done('read-messages'));
      const remove = () => client.callTool({ name: 'delete-messages', arguments: {} });
      const pagesBefore = browser.pages.length;
      expect((await callTwice(remove, finish)).content).toEqual(done('delete-messages'));
      expect((stored as Stored).tokens?.scope?.split(' ').toSorted()).toEqual(['read:messages', 'write:messages']);
      expect(browser.pages.slice(pagesBefore).join()).toContain('<li>write:messages</li>');
      expect(scene.fetched.slice(0, 2)).toEqual(['POST /mcp 401', 'GET /.well-known/oauth-protected-resource/mcp 200']);
      expect(scene.fetched).toContain('POST idp/reg 201');
      expect(scene.fetched).toContain('POST /mcp 403');
      // Without its access token, the client refreshes.
      expect((stored as Stored).tokens?.refresh_token).toMatch(/./);
      Object.assign(stored, { tokens: { ...(stored as Stored).tokens, access_token: 'expired' } });
      const before = scene.fetched.length;
      expect((await client.callTool({ name: 'read-messages', arguments: {} })).content).toEqual(done('read-messages'));
      expect(scene.fetched.slice(before)).toContain('POST idp/token 200');
      await client.close();
    },
  );

  // With a refresh token, SDK 1.x refreshes after a 403 instead of requesting the scope of the challenge.
  it.each(['Bearer', 'DPoP'] as const)(
    'SDK 1.x, %s → 401, metadata, registration, consent, tool; 403, new token, tool',
    async (scheme) => {
      const { provider, stored, takeCallback } = createProvider(scene, false);
      const authProvider = provider as never; // it stores what it is given
      const holder = createDpopClient();
      const fetch = scheme === 'DPoP' ? proveEach(scene, holder) : scene.fetch;
      const open = () => new Transport1(new URL(scene.resource), { authProvider, fetch: fetch as never });
      scene.fetched.length = 0;
      let transport = open();
      let client = new Client1({ name: 'test', version: '1.0.0' });
      const finish = () => transport.finishAuth(takeCallback()?.searchParams.get('code') ?? '');
      await callTwice(
        () => client.connect(transport as never),
        async () => {
          await finish();
          transport = open();
          client = new Client1({ name: 'test', version: '1.0.0' });
        },
      );
      expect((stored as Stored).tokens).toMatchObject({ token_type: scheme });
      expect((await client.callTool({ name: 'read-messages', arguments: {} })).content).toEqual(done('read-messages'));
      const remove = () => client.callTool({ name: 'delete-messages', arguments: {} });
      expect((await callTwice(remove, finish)).content).toEqual(done('delete-messages'));
      expect((stored as Stored).tokens?.scope?.split(' ').toSorted()).toEqual(['read:messages', 'write:messages']);
      expect(scene.fetched.slice(0, 2)).toEqual(['POST /mcp 401', 'GET /.well-known/oauth-protected-resource/mcp 200']);
      expect(scene.fetched).toContain('POST /mcp 403');
      await client.close();
      holder.close();
    },
  );
});
