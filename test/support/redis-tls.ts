import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../tools/shared/folder.js';
import { startTlsRedis as startOfFiles } from '../../tools/shared/redis.js';
import type { TestRedis } from './redis.ts';
import { createTestCertificates } from './tls.ts';

/** A real Redis that requires TLS. */
export interface TlsRedis extends TestRedis {
  /** File with its authority, as `NODE_EXTRA_CA_CERTS` names it. */
  readonly ca: string;
}

/** Starts it. `otherCa` is an authority in PEM that the file has too. */
export async function startTlsRedis(otherCa = ''): Promise<TlsRedis> {
  const folder = makeFolder('redis-tls');
  const server = await createTestCertificates();
  const write = async (name: string, text: string): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, text);
    return file;
  };
  const files = { certificateFile: await write('cert', server.cert), keyFile: await write('key', server.key) };
  return Object.assign(await startOfFiles(files), { ca: await write('ca', `${server.ca}\n${otherCa}`) });
}
