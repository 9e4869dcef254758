import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { signCompact } from '../../src/core/jose/sign.ts';
import { chooseSeed, countRequests, libraryProgram, runTarget, targets } from '../../tools/faults/isolation/run.js';
import { runtime, runtimeArgs, startService, superviseChild } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';

// The same clients as in `npm run faults -- --only markers`, with fewer requests.

const requests = Number(process.env['MARKER_REQUESTS'] ?? 1500);
const seed = chooseSeed();
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'ec-key', alg: 'ES256', use: 'sig' };

type OnLine = (line: string) => void;

const provider = await useTestProvider();
let folder: string;
let world: object;
beforeAll(async () => {
  provider.publish(jwk);
  folder = await mkdtemp(join(tmpdir(), 'portcullis-markers-'));
  const { cert, key } = await createTestCertificates();
  const certificate = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  await writeFile(certificate.certFile, cert);
  await writeFile(certificate.keyFile, key);
  const { issuer, audience, domain, caFile } = provider;
  world = {
    ...{ issuer, audience, folder, certificate },
    jwks: { keys: [jwk] },
    sign: (claims: Readonly<Record<string, unknown>>) =>
      signCompact({ alg: 'ES256', typ: 'at+jwt', kid: jwk.kid }, claims, { alg: 'ES256', privateKey }),
    async start(options: { command: 'serve' | 'gate'; args: string[]; environment: object; onLine: OnLine }) {
      const { command, args, onLine } = options;
      const own = command === 'serve' ? { IDP_DOMAIN: domain, IDP_AUDIENCE: audience } : {};
      const environment = { NODE_EXTRA_CA_CERTS: caFile, ...own, ...options.environment };
      const { port, adminUrl, logs, stop } = await startService({ command, args, environment });
      return {
        ports: [port],
        adminUrl,
        async stop() {
          expect(await stop()).toBe(0);
          for (const line of logs) onLine(JSON.stringify(line));
        },
      };
    },
    async startLibrary({ argument, onLine }: { argument: string; onLine: OnLine }) {
      const child = spawn(runtime, [...runtimeArgs, libraryProgram, argument], {
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      });
      const ended = superviseChild(child);
      if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', onLine);
      const [ports] = (await once(child, 'message')) as [Record<string, number>]; // of libraryProgram
      return {
        ports: Object.values(ports),
        async stop() {
          child.kill();
          await ended;
        },
      };
    },
  };
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it.each(targets.map((target) => [target.name, target] as const))(
  'every connection has a marker: %s: requests in random cuts → no byte of another connection',
  async (_name, target) => {
    const part = { requests: countRequests(target, requests), seed, first: 1 };
    const { counts, defects } = await runTarget(target, world, part);
    expect(defects, `PROPERTY_SEED=${seed}`).toEqual([]);
    expect(counts.requests).toBeGreaterThanOrEqual(part.requests);
    expect(counts.lines).toBeGreaterThan(0);
    if (target.kinds !== 'proxy') return;
    expect(counts.received).toBeGreaterThan(0);
    expect(counts.tunnels).toBeGreaterThan(0);
  },
);
