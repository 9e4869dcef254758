import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { gateEdgeNames, lastLines, startGateEdge, useUpstream } from '../support/gate-edge.ts';
import { useGate } from '../support/gate-process.ts';
import { needs } from '../support/programs.ts';
import { edges, type ProxyServer } from '../support/proxy-server.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';

const provider = await useTestProvider();
const certificates = await createTestCertificates();
const upstream = await useUpstream();
afterEach(() => {
  upstream.intercept = undefined;
});
const issuers = { staff: { issuer: provider.issuer, audience: provider.audience } };
const cors = { origins: ['https://app.example'], credentials: true };
const rules = [
  { id: 'all', path: '/**' },
  { id: 'browsers', path: '/browsers', cors },
];
const gate = await useGate(provider, { issuers, rules });
await gate.findLog(({ event }) => event === 'keys_fetched');
const token = await provider.sign({ client_id: 'shop' });

const identityNames = ['x-auth-subject', 'x-auth-client', 'x-auth-scope', 'x-auth-issuer'];
const overrides = [
  ...['X-Original-URL', 'X-Rewrite-URL', 'X-Override-URL', 'X-HTTP-Method'],
  ...['X-HTTP-Method-Override', 'X-Method-Override'],
];

/** The value of a header of the last request at the upstream; every other character of its name is read as `-`. */
const lastHeader = (name: string) => lastLines(upstream).get(name.toLowerCase())?.[0];

for (const name of gateEdgeNames) {
  describe(name, needs(edges[name].program), () => {
    let edge: ProxyServer;
    beforeAll(async () => {
      edge = await startGateEdge(name, { gate: `127.0.0.1:${gate.port}`, upstream: upstream.address }, certificates);
    });
    afterAll(() => edge?.stop());

    const open = async (): Promise<TLSSocket> => {
      const socket = connect({ host: '127.0.0.1', port: edge.port, servername: 'localhost', ca: certificates.ca });
      await once(socket.on('error', () => {}).setEncoding('latin1'), 'secureConnect');
      return socket;
    };
    const head = (line: string, ...headers: readonly string[]): string =>
      [`${line} HTTP/1.1`, `Host: localhost:${edge.port}`, ...headers, '', ''].join('\r\n');
    const bearer = (): string => `Authorization: Bearer ${token}`;
    /** Sends bytes on their own connection; resolves once the response matches. */
    const sendUntil = async (bytes: string, pattern: RegExp): Promise<string> => {
      const socket = await open();
      let received = '';
      socket.write(bytes);
      for await (const chunk of socket) {
        received += String(chunk);
        if (pattern.test(received)) break;
      }
      socket.destroy();
      return received;
    };

    /** Sends bytes on their own connection, which stays open until the end of the test. */
    const openReading = async (bytes: string) => {
      const socket = await open();
      onTestFinished(() => void socket.destroy());
      let received = '';
      socket.on('data', (chunk: string) => {
        received += chunk;
      });
      socket.write(bytes);
      const receive = async (pattern: RegExp): Promise<string> => {
        await expect.poll(() => received, { timeout: 5000 }).toMatch(pattern);
        return received;
      };
      return { socket, receive };
    };

    it.each([
      ['one identity header', 'X-Auth-Subject'],
      ['every identity header', `keep-alive, ${identityNames.join(', ')}`],
      ['upgrade, and an identity header', 'Upgrade, X-Auth-Subject'],
    ])('Connection names %s → the upstream gets the identity', async (_what, connection) => {
      const bytes = head('GET /private', `Connection: ${connection}`, bearer());
      expect(await sendUntil(bytes, /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200/);
      expect(identityNames.map(lastHeader)).toEqual([expect.any(String), 'shop', 'read:messages', provider.issuer]);
    });

    it('WebSocket → 101, bytes in both directions, and the identity at the upstream', async () => {
      const lines = [
        ...['Connection: keep-alive, Upgrade, X-Auth-Subject', 'Upgrade: WebSocket', 'Sec-WebSocket-Version: 13'],
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ];
      const { socket, receive } = await openReading(head('GET /chat', ...lines, bearer()));
      await receive(/^HTTP\/1\.1 101 .*\r\n\r\n$/s);
      socket.write('over the tunnel');
      await receive(/over the tunnel$/);
      expect(identityNames.map(lastHeader)).toEqual([expect.any(String), 'shop', 'read:messages', provider.issuer]);
      const refused = await sendUntil(head('GET /chat', ...lines), /\r\n\r\n/);
      expect(refused).toMatch(/^HTTP\/1\.1 401/);
    });

    it('Upgrade: h2c → not forwarded', async () => {
      const bytes = head('GET /private', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', bearer());
      expect(await sendUntil(bytes, /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200/);
      expect(lastHeader('upgrade')).toBeUndefined();
    });

    it('server-sent events → each arrives before the next is sent', async () => {
      let goOn = (): void => {};
      upstream.intercept = (_incoming, outgoing) => {
        outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n');
        goOn = () => void outgoing.end('data: second\n\n');
        return true;
      };
      const { receive } = await openReading(head('GET /events', 'Accept: text/event-stream', bearer()));
      expect(await receive(/data: first/)).not.toContain('data: second');
      goOn();
      await receive(/data: second/);
    });

    /** Uploads a body of this size in chunks of 1 MiB; resolves with status and body. */
    const upload = async (size: number): Promise<readonly [number | undefined, string]> => {
      const outgoing = request({
        ...{ host: '127.0.0.1', port: edge.port, servername: 'localhost', ca: certificates.ca, agent: false },
        ...{ method: 'PUT', path: '/files/a' },
        headers: { host: `localhost:${edge.port}`, 'content-length': size, authorization: `Bearer ${token}` },
      });
      const piece = Buffer.alloc(1024 * 1024);
      Readable.from(Array.from({ length: size / piece.length }, () => piece)).pipe(outgoing);
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      const body = await text(response);
      outgoing.on('error', () => {}).destroy();
      return [response.statusCode, body];
    };

    it('an upload of 20 MB → arrives in full', async () => {
      upstream.intercept = (incoming, outgoing) => {
        let length = 0;
        incoming.on('data', (chunk: Buffer) => {
          length += chunk.length;
        });
        incoming.on('end', () => outgoing.end(String(length)));
        return true;
      };
      const size = 20 * 1024 * 1024;
      expect(await upload(size)).toEqual([200, String(size)]);
    });

    it('an upload of 2 MB without a token → the 401 of the gate', async () => {
      const bytes = head('PUT /files/a', 'Content-Length: 2097152', 'Expect: 100-continue');
      const received = await sendUntil(bytes, /"error".*\}/s);
      expect(received).toMatch(/HTTP\/1\.1 401 .*\r\nwww-authenticate: /is);
      expect(received).not.toContain('<html>');
    });

    it('an early 413 of the upstream → arrives', async () => {
      upstream.intercept = (incoming, outgoing) => {
        outgoing.writeHead(413, { 'content-type': 'text/plain' }).end('too large');
        incoming.resume();
        return true;
      };
      expect(await upload(4 * 1024 * 1024)).toEqual([413, 'too large']);
    });

    it.each(overrides)('%s, in each spelling → removed', async (header) => {
      const spellings = [header, header.toLowerCase(), ...[..."_.!~*'"].map((each) => header.replaceAll('-', each))];
      for (const spelling of spellings) {
        await sendUntil(head('GET /private', `${spelling}: DELETE`, bearer()), /\r\n\r\n/);
        expect([spelling, lastHeader(header)]).toEqual([spelling, undefined]);
      }
    });

    it.each([
      ['valid', 'caller-1', 'caller-1'],
      ['invalid', 'caller 1', undefined],
      ['too long', 'c'.repeat(129), undefined],
      ['absent', undefined, undefined],
    ])(
      'X-Request-Id of the caller is %s → the upstream gets a valid id, the caller the id of the gate',
      async (...row) => {
        const [, sent, arrives] = row;
        const lines = sent === undefined ? [] : [`X-Request-Id: ${sent}`];
        const received = await sendUntil(head('GET /private', ...lines, bearer()), /\r\n\r\n/);
        const ids = [...received.matchAll(/^x-request-id: (.*)\r$/gim)].map(([, id]) => id);
        expect(ids).toHaveLength(1);
        const line = await gate.findLog(({ id }) => id === ids[0]);
        expect(line).toMatchObject({ rule: 'all', status: 200 });
        expect(lastHeader('x-request-id')).toBe(arrives ?? ids[0]);
      },
    );

    it('an id that the upstream sets → not passed on, because the caller gets the id of the gate', async () => {
      upstream.intercept = (_incoming, outgoing) => {
        outgoing.writeHead(200, { 'x-request-id': 'of-the-upstream' }).end();
        return true;
      };
      const received = await sendUntil(head('GET /private', bearer()), /\r\n\r\n/);
      expect(received).toMatch(/^x-request-id: /im);
      expect(received).not.toContain('of-the-upstream');
    });

    it('a refusal for a listed origin → a script can read it', async () => {
      const refusal = async (origin: string) =>
        await sendUntil(head('GET /browsers', `Origin: ${origin}`), /"error".*\}/s);
      const received = await refusal('https://app.example');
      expect(received).toMatch(/^HTTP\/1\.1 401/);
      expect(received).toMatch(/^access-control-allow-origin: https:\/\/app\.example\r$/im);
      expect(received).toMatch(/^access-control-allow-credentials: true\r$/im);
      expect(received).toMatch(/^access-control-expose-headers: .*WWW-Authenticate/im);
      expect(received).toMatch(/^vary: Origin\r$/im);
      expect(await refusal('https://evil.example')).not.toMatch(/^access-control-allow-origin/im);
    });

    it('a preflight of a listed origin → the upstream responds; of another → 403', async () => {
      const preflight = (origin: string): Promise<string> =>
        sendUntil(head('OPTIONS /browsers', `Origin: ${origin}`, 'Access-Control-Request-Method: GET'), /\r\n\r\n/);
      expect(await preflight('https://app.example')).toMatch(/^HTTP\/1\.1 200/);
      expect(upstream.received.at(-1)).toMatchObject({ method: 'OPTIONS', target: '/browsers' });
      expect(await preflight('https://evil.example')).toMatch(/^HTTP\/1\.1 40[13]/);
    });

    it('a refusal → without X-Gate-Body', async () => {
      const received = await sendUntil(head('GET /private'), /\r\n\r\n/);
      expect(received).toMatch(/^HTTP\/1\.1 401/);
      expect(received).not.toMatch(/x-gate-body/i);
    });
  });
}
