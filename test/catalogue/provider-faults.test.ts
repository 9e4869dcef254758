import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { runCommand } from '../support/command-runs.ts';
import { type GateProcess, startGate } from '../support/gate-process.ts';
import { openRawServers, respondWith } from '../support/raw-provider.ts';
import { takeRsaKeys } from '../support/rsa-keys.ts';
import { createTestCertificates } from '../support/tls.ts';
import { bearer } from '../support/variant-service.ts';
import { type ProviderFault, providerFaults, type Told, unusualProviders } from './provider-faults.ts';

const audience = 'https://api.example/';
const { privateKey, publicKey } = takeRsaKeys();
const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'key-1', use: 'sig', alg: 'RS256' };
const servers = openRawServers();
const usual = await createTestCertificates();
const expired = await createTestCertificates({ from: -2, to: -1 });
const untrusted = await createTestCertificates({ from: -1, to: 1 });
const certificates = { usual, expired, untrusted, none: undefined };
const ca = `${usual.ca}\n${expired.ca}`;

const refusing = new Map<number, number>();

/** Starts a provider with a fault; returns its issuer. */
async function startFaulty(fault: ProviderFault): Promise<string> {
  const { part, members, send = respondWith, host = 'localhost', certificate = 'usual' } = fault;
  if (fault.isDown) return `https://localhost:${await findFreePort()}/`;
  const port: number = await servers.startProvider(
    (head) => {
      const isMetadata = head.startsWith('GET /.well-known/openid-configuration ');
      const own = isMetadata ? { issuer, jwks_uri: `${issuer}jwks` } : { keys: [jwk] };
      const isFaulty = part === undefined || part === (isMetadata ? 'metadata' : 'keys');
      return isFaulty ? send(JSON.stringify({ ...own, ...members })) : respondWith(JSON.stringify(own));
    },
    {
      certificate: certificates[certificate],
      ...(fault.after && { after: fault.after }),
      ...(host === '127.0.0.2' && { host }),
    },
  );
  const issuer = `https://${host}:${port}/`;
  if (fault.connect !== undefined) refusing.set(port, fault.connect);
  return issuer;
}

const faults = [...providerFaults.map(({ fault }) => fault), ...Object.values(unusualProviders)];
const issuers = await Promise.all(faults.map(startFaulty));
const tokens = await Promise.all(
  issuers.map((issuer) =>
    new SignJWT({ client_id: 'c', jti: 'j' })
      .setProtectedHeader({ alg: 'RS256', kid: 'key-1', typ: 'at+jwt' })
      .setIssuer(issuer)
      .setAudience(audience)
      .setSubject('alice')
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(privateKey),
  ),
);
const folder = await mkdtemp(join(tmpdir(), 'portcullis-providers-'));
const caFile = join(folder, 'ca.pem');
await writeFile(caFile, ca);

const rulesOf = (named: readonly (readonly [name: string, issuer: string])[]): object => ({
  issuers: Object.fromEntries(named.map(([name, issuer]) => [name, { issuer, audience }])),
  rules: [{ id: 'all', path: '/**', issuers: named.map(([name]) => name) }],
});
const named = issuers.map((issuer, index) => [`i${index}`, issuer] as const);
// On a busy host, few providers respond within the 2 seconds for the metadata if many requests begin at the same time.
const batchSize = 7;
const batches = Array.from({ length: Math.ceil(named.length / batchSize) }, (_, batch) =>
  named.slice(batch * batchSize, (batch + 1) * batchSize),
);
const ruleFiles = await Promise.all(
  batches.map(async (batch, index) => {
    const file = join(folder, `rules-${index}.json`);
    await writeFile(file, JSON.stringify(rulesOf(batch)));
    return file;
  }),
);
afterAll(async () => {
  servers.close();
  await rm(folder, { recursive: true });
});

interface Finding {
  readonly issuer?: string;
  readonly level: string;
  readonly seen: string;
  readonly fix: string;
}

type Settings = Readonly<Record<string, string>>;

/** Lines of `portcullis explain` about a request, one for each issuer without keys. */
async function explainAll(environment: Settings): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const file of ruleFiles) {
    const args = ['explain', '--rules', file, '--url', `${audience}x`];
    lines.push(...(await runCommand(args, environment, `Authorization: Bearer ${tokens[0]}\n`)).stderr.split('\n'));
  }
  return lines;
}

async function askDoctor(environment: Settings): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  for (const RULES of ruleFiles) {
    const args = ['doctor', '--json', '--only', 'provider,tls', '--timeout', '4'];
    const { stdout } = await runCommand(args, { ...environment, RULES });
    all.push(...(JSON.parse(stdout) as { readonly findings: readonly Finding[] }).findings);
  }
  return all;
}

/** Lines on stderr of a library without a listener, and the outcome of each token. */
async function authorizeAll(): Promise<{ readonly lines: readonly string[]; readonly reasons: readonly unknown[] }> {
  const warn = vi.spyOn(console, 'warn').mockReturnValue();
  const server = createResourceServer({ issuers: issuers.map((issuer) => ({ issuer })), audience, ca });
  const reasons: unknown[] = [];
  for (const batch of batches) {
    const outcomes = batch.map((_, index) =>
      server
        .authorize({ method: 'GET', url: audience, headers: new Headers(authorizationOf(reasons.length + index)) })
        .then(
          () => 'granted',
          (error: { readonly reason: string }) => error.reason,
        ),
    );
    reasons.push(...(await Promise.all(outcomes)));
  }
  server.close();
  const lines = warn.mock.calls.map(([line]) => String(line));
  warn.mockRestore();
  return { lines, reasons };
}

const authorizationOf = (index: number) => ({ authorization: `Bearer ${tokens[index]}` });

/** The line about the keys of an issuer. */
const findLine = (lines: readonly string[], issuer: string) => lines.find((line) => line.includes(`. ${issuer}`));

describe.each(['directly', 'through a proxy'] as const)('%s', (way) => {
  let gate: GateProcess;
  let explained: readonly string[];
  let findings: readonly Finding[];
  let library: Awaited<ReturnType<typeof authorizeAll>>;

  beforeAll(async () => {
    const proxy = `http://127.0.0.1:${await servers.startProxy((port) => refusing.get(port) ?? 200)}`;
    const proxied: Record<string, string> = way === 'directly' ? {} : { HTTPS_PROXY: proxy };
    vi.stubEnv('HTTPS_PROXY', proxied['HTTPS_PROXY']);
    const settings = { ...proxied, NODE_EXTRA_CA_CERTS: caFile };
    gate = await startGate({ caFile } as Parameters<typeof startGate>[0], rulesOf(named), proxied); // it reads this file
    // One after the other: each has a few seconds for all providers.
    library = await authorizeAll();
    findings = await askDoctor(settings);
    explained = await explainAll(settings);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await gate.stop();
  });

  async function expectTold(index: number, told: Told): Promise<void> {
    const [message, fix] = told;
    const issuer = issuers[index] ?? '';
    const line = await gate.findLog(
      (each) =>
        each['issuer'] === issuer && each.event === 'keys_fetch_failed' && message.test(String(each['message'])),
    );
    expect(line['fix']).toMatch(fix);
    expect(line['url']).toContain(issuer);
    for (const each of [library.lines, explained].map((lines) => findLine(lines, issuer) ?? 'none')) {
      // Without anchors, because a line has more than the message.
      expect(each).toMatch(new RegExp(message.source.replace(/\$$/, '')));
      expect(each).toMatch(new RegExp(fix.source.replace(/^\^/, ''), 'i'));
    }
    const found = findings.find((each) => each.issuer === `i${index}` && each.level === 'fail');
    if (line['kind'] === 'foreign_issuer') {
      expect(found).toMatchObject({ seen: expect.stringContaining('https://idp.internal/'), expected: issuer });
    } else if (line['kind'] === 'tls') {
      expect(found?.fix).toMatch(fix);
    } else {
      expect(found?.seen).toMatch(message);
      expect(found?.fix).toMatch(fix);
    }
  }

  async function expectRead(index: number): Promise<void> {
    const issuer = issuers[index] ?? '';
    await gate.findLog(({ event, ...line }) => event === 'keys_fetched' && line['issuer'] === issuer);
    expect((await gate.ask({ path: '/x', headers: bearer(tokens[index] ?? '') })).status).toBe(200);
    expect(library.reasons[index]).toBe('granted');
    expect([library.lines, explained].map((lines) => findLine(lines, issuer))).toEqual([undefined, undefined]);
    expect(findings.filter((each) => each.issuer === `i${index}` && each.level === 'fail')).toEqual([]);
  }

  describe('provider that is not to be believed', () => {
    it.each(providerFaults.map((each, index) => ({ ...each, index })))(
      '$attack, $name → $status $reason, with its cause',
      async ({ index, status, reason, told, toldThrough }) => {
        const expected = way === 'directly' ? told : toldThrough;
        if (expected === undefined) return expectRead(index);
        await expectTold(index, expected);
        const answer = await gate.ask({ path: '/x', headers: bearer(tokens[index] ?? '') });
        expect(answer.status).toBe(status);
        expect(answer.headers.get('retry-after')).toBe('5');
        expect(library.reasons[index]).toBe(reason);
      },
    );
  });

  it.each(Object.keys(unusualProviders).map((name, index) => [name, index + providerFaults.length] as const))(
    '%s → keys are read, and no line',
    (_, index) => expectRead(index),
  );
});
