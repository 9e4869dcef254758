import fastify from 'fastify';
import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fastify';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const protect = createProtect(resourceServer);
const app = fastify();

app.get('/', async () => 'open to all');
app.get(
  '/messages',
  protect({ scopes: ['read:messages'] }, async (_request, _reply, { claims }) => ({ reader: claims.sub })),
);

await app.listen({ port: Number(process.env['PORT'] ?? 3000) });
