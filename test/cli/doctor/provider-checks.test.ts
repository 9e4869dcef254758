import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { findFreePort } from '../../../tools/shared/network.js';
import { startForwardProxy } from '../../support/forward-proxy.ts';
import { needs } from '../../support/programs.ts';
import { type BentProvider, startBentProvider } from './bent-provider.ts';
import { codesOf, runDoctor } from './run-doctor.ts';

let provider: BentProvider;
beforeAll(async () => {
  provider = await startBentProvider();
});
afterAll(() => provider.close());
beforeEach(() => {
  provider.bend = {};
});

const only = ['--only', 'provider,keys,tls,clock'];
const settings = (more: Readonly<Record<string, string | undefined>> = {}) => ({
  IDP_DOMAIN: provider.domain,
  IDP_AUDIENCE: 'https://api.example/',
  NODE_EXTRA_CA_CERTS: provider.caFile,
  ...more,
});
const seenOf = ({ findings }: Awaited<ReturnType<typeof runDoctor>>, code: string): string | undefined =>
  findings.find((finding) => finding.code === code)?.seen;

describe('healthy provider', () => {
  it('→ no finding, exit 0', async () => {
    const { status, findings } = await runDoctor(only, settings());
    expect(findings.map(({ check, level }) => [check, level])).toEqual([
      ['provider', 'ok'],
      ['keys', 'ok'],
      ['tls', 'ok'],
      ['clock', 'ok'],
    ]);
    expect(status).toBe(0);
  });
});

describe('one defect', () => {
  it('private authority → D110 with its name', async () => {
    const result = await runDoctor(only, settings({ NODE_EXTRA_CA_CERTS: undefined }));
    expect(result.status).toBe(1);
    expect(codesOf(result.findings)).toEqual(['D110']);
    expect(seenOf(result, 'D110')).toBe('the chain ends at "Portcullis test authority", which is not trusted');
    expect(result.findings.find(({ code }) => code === 'D110')?.fix).toContain('NODE_EXTRA_CA_CERTS=');
  });

  it('certificate for another name → D111', async () => {
    // Other loopback addresses lead to the same server, and its certificate does not name them.
    const domain = provider.domain.replace('localhost', '127.0.0.2');
    const { port } = new URL(provider.issuer);
    const bridge = createTcpServer((socket) => {
      socket.pipe(connect(Number(port), '127.0.0.1')).pipe(socket);
    }).listen(Number(port), '127.0.0.2');
    await once(bridge, 'listening');
    try {
      const result = await runDoctor(only, settings({ IDP_DOMAIN: domain }));
      expect(codesOf(result.findings)).toEqual(['D111']);
      expect(seenOf(result, 'D111')).toContain('localhost');
    } finally {
      bridge.close();
    }
  });

  it.each([
    ['has expired', { from: -2, to: -1 }],
    ['is not valid yet', { from: 1, to: 2 }],
  ])('certificate that %s → D112 with its dates', async (_, validity) => {
    const late = await startBentProvider(validity);
    try {
      const result = await runDoctor(only, settings({ IDP_DOMAIN: late.domain, NODE_EXTRA_CA_CERTS: late.caFile }));
      expect(result.status).toBe(1);
      expect(codesOf(result.findings)).toEqual(['D112']);
      expect(seenOf(result, 'D112')).toMatch(/^valid from .* GMT to .* GMT$/);
    } finally {
      await late.close();
    }
  });

  it('port that speaks plain HTTP → D113', async () => {
    const plain = createServer((_, response) => response.end());
    await once(plain.listen(0, '127.0.0.1'), 'listening');
    const { port } = plain.address() as AddressInfo; // it listens on TCP
    const result = await runDoctor(only, settings({ IDP_DOMAIN: `localhost:${port}` }));
    plain.close();
    expect(codesOf(result.findings)).toEqual(['D113']);
  });

  it('wrong port → D100 with the address, without a proxy', async () => {
    const domain = `localhost:${await findFreePort()}`;
    const result = await runDoctor(only, settings({ IDP_DOMAIN: domain }));
    expect(codesOf(result.findings)).toEqual(['D100']);
    expect(seenOf(result, 'D100')).toContain(domain);
    expect(seenOf(result, 'D100')).toContain('ECONNREFUSED');
    expect(seenOf(result, 'D100')).not.toContain('PROXY');
  });

  it('dead outbound proxy → D101 with its address and variable, without its password', async () => {
    const proxy = `127.0.0.1:${await findFreePort()}`;
    const result = await runDoctor(only, settings({ HTTPS_PROXY: `http://user:secret@${proxy}` }));
    expect(codesOf(result.findings)).toEqual(['D101']);
    expect(seenOf(result, 'D101')).toContain(`${proxy} does not accept connections, and HTTPS_PROXY`);
    expect(JSON.stringify(result.findings)).not.toContain('secret');
  });

  it('issuer is an alias → D103', async () => {
    provider.bend = { issuer: 'https://public.example/' };
    const result = await runDoctor(only, settings());
    expect(codesOf(result.findings)).toEqual(['D103']);
    expect(seenOf(result, 'D103')).toBe('the discovery document has the issuer https://public.example/');
    expect(result.findings[0]?.fix).toMatch(/^IDP_DOMAIN=public\.example, or set its public name/);
  });

  it('issuer without its slash → D104', async () => {
    provider.bend = { issuer: provider.issuer.slice(0, -1) };
    expect(codesOf((await runDoctor(only, settings())).findings)).toEqual(['D104']);
  });

  it('domain with a scheme → D105 with the correct line', async () => {
    const { status, findings } = await runDoctor(only, settings({ IDP_DOMAIN: provider.issuer }));
    expect(codesOf(findings)).toEqual(['D105']);
    expect(findings[0]?.fix).toBe(`IDP_DOMAIN=${provider.domain}`);
    expect(status).toBe(1);
  });

  it('discovery is not found → D102', async () => {
    provider.bend = { discoveryStatus: 404 };
    expect(codesOf((await runDoctor(only, settings())).findings)).toEqual(['D102']);
  });

  it('provider hangs → D100 with the time limit', async () => {
    provider.bend = { hangs: true };
    const result = await runDoctor([...only, '--timeout', '1'], settings());
    expect(codesOf(result.findings)).toEqual(['D100']);
    expect(seenOf(result, 'D100')).toBe(`${provider.domain}: no response within 1 s`);
  });

  it.each([
    [429, /^The provider limits requests/],
    [500, /^The provider fails/],
    [503, /^The provider fails/],
  ])('status %i of the provider → D106, not the settings', async (status, fix) => {
    provider.bend = { discoveryStatus: status };
    const { findings } = await runDoctor(only, settings());
    expect(codesOf(findings)).toEqual(['D106']);
    expect(findings[0]?.fix).toMatch(fix);
  });

  it('keys for another algorithm than ALGORITHMS → D202 with both', async () => {
    const result = await runDoctor(only, settings({ ALGORITHMS: 'ES256' }));
    expect(codesOf(result.findings)).toEqual(['D202']);
    expect(result.findings.find(({ code }) => code === 'D202')).toMatchObject({
      seen: expect.stringMatching(/^the published keys are for RS256/),
      expected: 'a key for ES256',
      fix: expect.stringMatching(/^ALGORITHMS=RS256/),
    });
  });

  it('jwks_uri is http → D200', async () => {
    provider.bend = { jwksUri: 'http://localhost/jwks' };
    const result = await runDoctor(only, settings());
    expect(codesOf(result.findings)).toEqual(['D200']);
    expect(seenOf(result, 'D200')).toBe('jwks_uri is http://localhost/jwks');
  });

  it('unreachable jwks_uri → D201', async () => {
    provider.bend = { jwksUri: `https://localhost:${await findFreePort()}/jwks` };
    expect(codesOf((await runDoctor(only, settings())).findings)).toEqual(['D201']);
  });

  it('no key → D202', async () => {
    provider.bend = { keys: [] };
    expect(codesOf((await runDoctor(only, settings())).findings)).toEqual(['D202']);
  });

  it('unusable key → D203 with its kid and the reason: a warning, exit 0', async () => {
    provider.bend = { keys: [provider.jwk, { ...provider.jwk, kid: 'for-encryption', use: 'enc' }] };
    const result = await runDoctor(only, settings());
    expect(codesOf(result.findings)).toEqual(['D203']);
    expect(seenOf(result, 'D203')).toBe('key for-encryption is not used: it is not for signatures');
    expect(result.status).toBe(0);
  });

  it.each([
    [602, 'behind'],
    [-602, 'ahead of'],
  ])('clock %i s off → D120 with the direction', async (lead, way) => {
    provider.bend = { lead };
    const result = await runDoctor(only, settings());
    expect(codesOf(result.findings)).toEqual(['D120']);
    expect(seenOf(result, 'D120')).toMatch(new RegExp(`^this host is 60[0-4] s ${way} localhost:\\d+ \\(±\\d+ s\\)$`));
    expect(result.status).toBe(1);
  });
});

describe('through an outbound proxy', needs('tinyproxy'), () => {
  it('proxy → named; an untrusted chain is read through it', async () => {
    const proxy = await startForwardProxy({ port: Number(new URL(provider.issuer).port) });
    try {
      const good = await runDoctor(only, settings({ HTTPS_PROXY: proxy.url }));
      expect(codesOf(good.findings)).toEqual([]);
      expect(good.findings[0]?.seen).toContain(`through ${new URL(proxy.url).host} (HTTPS_PROXY)`);
      const bad = await runDoctor(only, settings({ HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: undefined }));
      expect(codesOf(bad.findings)).toEqual(['D110']);
      expect(seenOf(bad, 'D110')).toContain('Portcullis test authority');
    } finally {
      await proxy.close();
    }
  });
});
