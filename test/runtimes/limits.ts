import { createAuthorize as createExpressAuthorize } from '../../src/adapters/express.ts';
import { createAuthorize as createFastifyAuthorize } from '../../src/adapters/fastify.ts';
import { createGuard } from '../../src/adapters/nest.ts';
import { createProtect as createNodeProtect } from '../../src/adapters/node.ts';
import { createRedisReplayStore } from '../../src/core/dpop/replay-redis.ts';
import { createKeySet } from '../../src/core/keys/key-set.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';

const issuer = 'https://idp.example/';
const audience = 'https://api.example/';
/** An address without a server: no keys are fetched. */
const createServer = () => createResourceServer({ issuer, audience });

/** Functions that a runtime may not support; `ca` is a certificate in PEM. */
const attempts: Readonly<Record<string, (ca: string) => unknown>> = {
  'ca of createResourceServer': (ca) => createResourceServer({ issuer, audience, ca }).close(),
  'ca of createKeySet': (ca) => createKeySet({ issuer, ca }).close(),
  'clientCertificate tls': () => createResourceServer({ issuer, audience, clientCertificate: 'tls' }).close(),
  // A port that nothing listens on: it goes on trying until it is closed.
  createRedisReplayStore: async () => (await createRedisReplayStore('redis://127.0.0.1:9')).close(),
  'portcullis/node': () => createNodeProtect(createServer()),
  'portcullis/express': () => createExpressAuthorize(createServer()),
  'portcullis/fastify': () => createFastifyAuthorize(createServer()),
  'portcullis/nest': () => createGuard(createServer()),
};

/** The errors of what this runtime cannot do, by what was tried. */
export async function findLimits(ca: string): Promise<Readonly<Record<string, string>>> {
  const limits: Record<string, string> = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      await attempt(ca);
    } catch (error) {
      limits[name] = String(error);
    }
  }
  return limits;
}
