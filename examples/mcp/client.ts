import { readFileSync } from 'node:fs';
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { ISSUER: expectedIssuer = 'https://localhost:4000/', RESOURCE: resource = 'http://localhost:3000/mcp' } =
  process.env;
const clientSecret = readFileSync(String(process.env['CLIENT_SECRET_FILE']), 'utf8').trim();
const authProvider = new ClientCredentialsProvider({ clientId: 'portcullis-service', clientSecret, expectedIssuer });

const client = new Client({ name: 'reader', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(resource), { authProvider }));
const { content } = await client.callTool({ name: 'read-messages', arguments: {} });
process.stdout.write(`${JSON.stringify(content)}\n`);
await client.close();
