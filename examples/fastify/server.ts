import fastify from 'fastify';
import { createResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/fastify';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const authorize = createAuthorize(resourceServer);
const app = fastify();

app.get('/', async () => 'open to all');
app.get('/messages', { onRequest: authorize({ scopes: ['read:messages'] }) }, async (request) => ({
  reader: authorize.accessOf(request).claims.sub,
}));

await app.listen({ port: Number(process.env['PORT'] ?? 3000) });
