import { createMcpExpressApp, requireBearerAuth } from '@modelcontextprotocol/express';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { createResourceServer, type TrustedIssuer } from 'portcullis';
import { createMcpAuth } from 'portcullis/mcp';

/** An MCP server with one tool. `resource` is its URL as clients call it, and the audience of their tokens. */
export function createApp(resource: string, issuer: TrustedIssuer) {
  const server = createResourceServer({ issuers: [issuer], audience: resource });
  const auth = createMcpAuth(server, {
    resource,
    authorizationServers: [issuer.issuer],
    policy: { scopes: ['read:messages'] },
  });
  const serve = toNodeHandler(createMcpHandler(createMessages));
  const app = createMcpExpressApp();
  app.use(auth.serveMetadata);
  app.all('/mcp', requireBearerAuth(auth.bearerAuth), (request, response) => serve(request, response, request.body));
  return app;
}

/** Made anew for each request. */
function createMessages(): McpServer {
  const server = new McpServer({ name: 'messages', version: '1.0.0' });
  server.registerTool('read-messages', { description: 'Reads the messages of the caller.' }, ({ http }) => ({
    content: [{ type: 'text', text: `No messages for ${http?.authInfo?.clientId}.` }],
  }));
  return server;
}
