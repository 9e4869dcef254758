import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';

/** An MCP server that knows nothing of OAuth. */
function createMessages(): McpServer {
  const server = new McpServer({ name: 'messages', version: '1.0.0' });
  server.registerTool('read-messages', { description: 'Reads messages.' }, () => ({
    content: [{ type: 'text', text: 'No messages.' }],
  }));
  return server;
}

const serve = toNodeHandler(createMcpHandler(createMessages));
createServer((request, response) => void serve(request as Parameters<typeof serve>[0], response)).listen(
  Number(process.env['PORT'] ?? 3000),
  '127.0.0.1',
);
