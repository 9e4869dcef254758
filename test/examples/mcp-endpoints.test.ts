import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import express from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMcpAuth } from '../../src/adapters/mcp.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, type TestIssuer } from '../../src/testing/index.ts';
import { listen } from '../support/listening.ts';

const paths = ['/first/mcp', '/second/mcp'];
const closers: (() => Promise<void>)[] = [];
let origin: string;

/** A provider that gives every client a token for the resource that it names (RFC 8707). */
async function startProvider(): Promise<{ readonly close: () => Promise<void>; readonly issuer: TestIssuer }> {
  const server = createServer(async (request, response) => {
    const answer = (status: number, value: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (request.url === '/token') {
      const aud = new URLSearchParams(await text(request)).get('resource');
      const token = issuer.token({ aud, scope: 'use' });
      answer(200, { access_token: token, token_type: 'Bearer', expires_in: 60 });
    } else if (request.url?.startsWith('/.well-known/')) {
      answer(200, {
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        response_types_supported: ['code'],
        grant_types_supported: ['client_credentials'],
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
      });
    } else {
      answer(404, {});
    }
  });
  const { port, close } = await listen(server);
  const url = `http://localhost:${port}`;
  const issuer = createTestIssuer({ issuer: url });
  return { close, issuer };
}

describe('two MCP endpoints on one server, with the real client', () => {
  let issuerUrl: string;
  beforeAll(async () => {
    const { close, issuer } = await startProvider();
    issuerUrl = issuer.issuer;
    const app = express();
    const api = await listen(createServer(app));
    closers.push(close, api.close);
    origin = `http://localhost:${api.port}`;
    const resourceServer = createResourceServer({ issuers: [issuer], audience: paths.map((path) => origin + path) });
    for (const path of paths) {
      const auth = createMcpAuth(resourceServer, {
        resource: origin + path,
        authorizationServers: [issuerUrl],
        policy: { scopes: ['use'] },
      });
      const answer = toNodeHandler(
        createMcpHandler(() => {
          const mcp = new McpServer({ name: path, version: '1.0.0' });
          mcp.registerTool('where', { description: 'Says where it is.' }, () => ({
            content: [{ type: 'text', text: path }],
          }));
          return mcp;
        }),
      );
      app.use(auth.serveMetadata);
      app.all(path, auth.protect, (request, response) => answer(request, response, request.body));
    }
  });
  afterAll(async () => {
    await Promise.all(closers.map((each) => each()));
  });

  it.each(paths)('%s: the client finds its metadata, gets a token for it, and calls its tool', async (path) => {
    const authProvider = new ClientCredentialsProvider({
      clientId: 'client',
      clientSecret: 'secret',
      expectedIssuer: issuerUrl,
    });
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(origin + path), { authProvider }));
    const { content } = await client.callTool({ name: 'where', arguments: {} });
    expect(content).toEqual([{ type: 'text', text: path }]);
    await client.close();
  });

  it.each(paths)('%s: the challenge links to its own metadata, whatever Host says', async (path) => {
    const answer = await fetch(origin.replace('localhost', '127.0.0.1') + path, { method: 'POST' });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toContain(
      `resource_metadata="${origin}/.well-known/oauth-protected-resource${path}"`,
    );
  });
});
