import { createApp } from './server.ts';

const { ISSUER: issuer = 'https://localhost:4000/', RESOURCE: resource = 'http://localhost:3000/mcp' } = process.env;
createApp(resource, { issuer }).listen(Number(new URL(resource).port));
