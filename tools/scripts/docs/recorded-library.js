// One resource server of the library; authorizes a Bearer request for each token that its parent sends.
import { createResourceServer } from '../../../build/core/resource-server/resource-server.js';

const { ISSUER = '', AUDIENCE = '' } = process.env;
const server = createResourceServer({ issuer: ISSUER, audience: AUDIENCE });
await server.ready();
process.on('message', async (/** @type {any} */ message) => {
  if (message.token === undefined) return;
  const request = new Request('https://api.example/', { headers: { authorization: `Bearer ${message.token}` } });
  await server.authorize(request, { scopes: ['read:messages'] });
  process.send?.({ type: 'authorized' });
});
process.send?.({ type: 'listening', url: '' });
