import { once } from 'node:events';
import { createServer, request } from 'node:https';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createProtect } from '../../src/adapters/node.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, expectRefused } from '../../src/testing/index.ts';
import { listen } from '../support/listening.ts';
import { createTestCertificates } from '../support/tls.ts';

const issuer = createTestIssuer({ alg: 'ES256' });
const options = { issuers: [issuer], audience: issuer.audience, algorithms: ['ES256'] } as const;
const client = await issuer.certificateClient();
const other = await issuer.certificateClient();
const call = (headers: Readonly<Record<string, string>>) => new Request('https://api.test/', { headers });
const bearer = (token: string) => call({ authorization: `Bearer ${token}` });

describe('a client with a certificate', () => {
  it('tls: its own connection → admitted; another one → refused', async () => {
    const server = createResourceServer({ ...options, clientCertificate: 'tls' });
    const { claims } = await server.authorize(bearer(client.token({ sub: 'alice' })), {}, client.connection);
    expect(claims).toMatchObject({ sub: 'alice', cnf: { 'x5t#S256': client.thumbprint } });
    const { connection } = other;
    await expectRefused(server, bearer(client.token()), 'client_certificate_mismatch', { connection });
    await expectRefused(server, bearer(client.token()), 'missing_client_certificate');
  });

  it('header of a proxy → admitted', async () => {
    const server = createResourceServer({ ...options, clientCertificate: 'header', trustProxy: ['127.0.0.1'] });
    const { connection } = client;
    await server.authorize(call(client.headers({ scope: 'read' })), { scopes: ['read'] }, connection);
    const borrowed = call({ ...client.headers(), 'client-cert': other.headers()['client-cert'] });
    await expectRefused(server, borrowed, 'client_certificate_mismatch', { connection });
  });

  it('a real TLS connection → admitted', async () => {
    const { cert, key } = await createTestCertificates();
    const protect = createProtect(createResourceServer({ ...options, clientCertificate: 'tls' }));
    const answer = protect({}, (_request, response, { claims }) => response.end(claims.sub));
    const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, answer);
    const { port, close } = await listen(server);
    const ask = async ({ certificate, key }: typeof client): Promise<number | undefined> => {
      const headers = { authorization: `Bearer ${client.token()}` };
      const own = { cert: certificate, key, rejectUnauthorized: false, agent: false, headers };
      const [response] = await once(request({ port, ...own }).end(), 'response');
      response.resume();
      return response.statusCode;
    };
    try {
      expect([await ask(client), await ask(other)]).toEqual([200, 401]);
    } finally {
      await close();
    }
  });
});

describe('without the optional package', () => {
  afterEach(() => {
    vi.doUnmock('@peculiar/x509');
    vi.resetModules();
  });

  it('certificateClient → an error that states what to install', async () => {
    vi.resetModules();
    vi.doMock('@peculiar/x509', () => {
      throw new Error('Cannot find package');
    });
    const { createTestIssuer: create } = await import('../../src/testing/index.ts');
    await expect(create().certificateClient()).rejects.toThrow(/^certificateClient\(\) needs .* @peculiar\/x509$/);
  });
});
