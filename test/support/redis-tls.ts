import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../../tools/shared/network.js';
import { startTestRedis, type TestRedis } from './redis.ts';
import { createClientCertificate, createTestCertificates } from './tls.ts';

/** A real Redis that requires TLS and a client certificate, with the PEM files of its clients. */
export interface TlsRedis extends TestRedis {
  /** Files as `REPLAY_CA`, `REPLAY_CERT` and `REPLAY_KEY` name them. */
  readonly files: Readonly<Record<'ca' | 'cert' | 'key', string>>;
}

/** Starts it. */
export async function startTlsRedis(): Promise<TlsRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-redis-tls-'));
  const [server, client] = await Promise.all([createTestCertificates(), createClientCertificate()]);
  const write = async (name: string, text: string): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, text);
    return file;
  };
  const files = {
    ca: await write('server.ca', server.ca),
    cert: await write('client.cert', client.cert),
    key: await write('client.key', client.key),
  };
  const port = await findFreePort();
  const redis = await startTestRedis({
    flags: [
      ...['--tls-port', String(port), '--tls-auth-clients', 'yes', '--tls-ca-cert-file', files.cert],
      ...['--tls-cert-file', await write('server.cert', server.cert)],
      ...['--tls-key-file', await write('server.key', server.key)],
    ],
  });
  return {
    ...redis,
    url: `rediss://localhost:${port}`,
    files,
    async stop() {
      await redis.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
