import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import { createResourceServer } from 'portcullis';
import { createMcpAuth } from 'portcullis/mcp';

const { ISSUER: issuer = 'https://localhost:4000/', RESOURCE: resource = 'http://localhost:3000/mcp' } = process.env;
const auth = createMcpAuth(createResourceServer({ issuer, audience: resource }), {
  resource,
  authorizationServers: [issuer],
  policy: { scopes: ['read:messages'] },
});

const app = express();
app.use(auth.serveMetadata);
app.all('/mcp', auth.protect, async (request, response) => {
  const server = new McpServer({ name: 'messages', version: '1.0.0' });
  server.registerTool('read-messages', { description: 'Reads the messages of the caller.' }, ({ authInfo }) => ({
    content: [{ type: 'text', text: `No messages for ${authInfo.extra.claims.sub}.` }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.listen(Number(new URL(resource).port));
