// Fastify with @fastify/jwt and get-jwks, as the documentation of get-jwks joins them; CACHE is the option `cache`.
import fastifyJwt from '@fastify/jwt';
import fastify from 'fastify';
import createGetJwks from 'get-jwks';
import { audience, host, issuer, openAnswer, port, privateAnswer } from './settings.js';

const { CACHE } = process.env;
const jwks = createGetJwks({ issuersWhitelist: [issuer] });
const app = fastify();
app.register(fastifyJwt, {
  decode: { complete: true },
  secret: (_request, { header: { kid, alg }, payload: { iss } }) => jwks.getPublicKey({ kid, alg, domain: iss }),
  verify: {
    algorithms: ['RS256'],
    allowedIss: issuer,
    allowedAud: audience,
    requiredClaims: ['exp'],
    ...(CACHE !== undefined && { cache: Number(CACHE) }),
  },
});
app.register(async (routes) => {
  routes.get('/api/public', async () => openAnswer());
  routes.get(
    '/api/private',
    {
      onRequest: async (request, reply) => {
        try {
          await request.jwtVerify();
        } catch {
          return reply.code(401).send({ error: 'invalid_token' });
        }
      },
    },
    async (request) => privateAnswer(request.user),
  );
});
await app.listen({ port, host });
