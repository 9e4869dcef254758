import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../tools/shared/network.js';
import { startTestRedis, type TestRedis } from './redis.ts';
import { createTestCertificates } from './tls.ts';

/** A real Redis that requires TLS. */
export interface TlsRedis extends TestRedis {
  /** File with its authority, as `NODE_EXTRA_CA_CERTS` names it. */
  readonly ca: string;
}

/** Starts it. `otherCa` is an authority in PEM that the file has too. */
export async function startTlsRedis(otherCa = ''): Promise<TlsRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-redis-tls-'));
  const server = await createTestCertificates();
  const write = async (name: string, text: string): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, text);
    return file;
  };
  const port = await findFreePort();
  const redis = await startTestRedis({
    flags: [
      ...['--tls-port', String(port), '--tls-auth-clients', 'no'],
      ...['--tls-cert-file', await write('server.cert', server.cert)],
      ...['--tls-key-file', await write('server.key', server.key)],
    ],
  });
  return {
    ...redis,
    url: `rediss://localhost:${port}`,
    ca: await write('server.ca', `${server.ca}\n${otherCa}`),
    async stop() {
      await redis.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
