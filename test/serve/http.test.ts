import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exchange, openRaw, readStatuses, send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { bearer, findVariant, openVariant } from '../support/variant-service.ts';

const provider = await useTestProvider();

/** A request as text: its line, then header lines; a Host among them takes the place of the usual one. */
function write(line: string, ...headers: readonly string[]): string {
  const host = headers.some((header) => /^host:/i.test(header)) ? [] : ['Host: api.example.test'];
  return `${[line, ...host, ...headers].join('\r\n')}\r\n\r\n`;
}

const last = 'Connection: close';

describe('the service', () => {
  const variant = findVariant('a');
  let service: OpenedService;
  const talk = (bytes: string) => exchange(service.port, bytes);

  beforeAll(async () => {
    service = await openVariant(variant, provider, { KEEP_ALIVE: '1' });
  });
  afterAll(() => service.stop());

  describe('versions and Host', () => {
    it.each(['/api/public', '/api/private'])('%s without Host → the log has a reason', async (path) => {
      await talk(`GET ${path} HTTP/1.1\r\nX-Request-Id: no-host${path.replaceAll('/', '.')}\r\n${last}\r\n\r\n`);
      const line = await service.findLog(({ request_id: id }) => id === `no-host${path.replaceAll('/', '.')}`);
      expect(line).toMatchObject({ status: 400, reason: 'bad_host_header', route: path });
    });

    it('the health check of a load balancer over HTTP/1.0 → 200', async () => {
      const received = await exchange(Number(new URL(service.adminUrl ?? '').port), 'GET /healthz HTTP/1.0\r\n\r\n');
      expect(readStatuses(received)).toEqual([200]);
    });
  });

  describe('framing', () => {
    const chunks = '5\r\nhello\r\n0\r\n\r\n';
    const private_ = write('GET /api/private HTTP/1.1', last);

    it('connection that is kept → as good for the fortieth request as for the first', async () => {
      const connection = openRaw(service.port);
      for (let count = 1; count <= 40; count++) {
        connection.write(write('GET /api/public HTTP/1.1'));
        await connection.receive(new RegExp(`^(?:HTTP/1\\.1 200 (?:(?!HTTP/)[^])*){${count}}$`));
      }
      connection.write(write('GET /nowhere HTTP/1.1', last));
      expect(readStatuses(await connection.closed).slice(-2)).toEqual([200, 404]);
    });

    it('GET with a chunked body → the body is skipped, the next request gets a response', async () => {
      const received = await talk(
        `${write('GET /api/public HTTP/1.1', 'Transfer-Encoding: chunked')}${chunks}${private_}`,
      );
      expect(readStatuses(received)).toEqual([200, 401]);
    });

    it('POST with a large body → 405 without waiting for it', async () => {
      const connection = openRaw(service.port);
      connection.write(write('POST /api/private HTTP/1.1', `Content-Length: ${64 * 1024 * 1024}`));
      expect(readStatuses(await connection.receive(/"Method Not Allowed"|Method Not Allowed/))).toEqual([405]);
      connection.destroy();
      const sent = await send(service.url, '/api/private', { method: 'POST', body: 'x'.repeat(1024 * 1024) });
      expect(sent.status).toBe(405);
    });

    it('Expect: 100-continue without a body → the final response alone', async () => {
      const continued = await talk(write('GET /api/public HTTP/1.1', 'Expect: 100-continue', last));
      expect(readStatuses(continued)).toEqual([200]);
    });

    it('another expectation → 417 in the configured form, with the id of the log line and its reason', async () => {
      const received = await talk(write('POST /api/public HTTP/1.1', 'Expect: tea', 'Content-Length: 4'));
      expect(readStatuses(received)).toEqual([417]);
      expect(received).toMatch(/^connection: close\r$/im);
      const [, id = ''] = /^x-request-id: (\S+)\r$/im.exec(received) ?? [];
      expect(await service.findLog((line) => line['id'] === id)).toMatchObject({
        status: 417,
        reason: 'unmet_expectation',
        method: 'POST',
      });
      const [, body = ''] = received.split('\r\n\r\n');
      const description = 'The expectation of the request cannot be met.';
      expect(JSON.parse(body)).toEqual(variant.refusal('invalid_request', description));
    });
  });

  it('connection that is idle → closed after KEEP_ALIVE, as announced', async () => {
    const connection = openRaw(service.port);
    connection.write(write('GET /api/public HTTP/1.1'));
    const received = await connection.closed;
    expect(readStatuses(received)).toEqual([200]);
    expect(received).toMatch(/keep-alive: timeout=1\r\n/i);
  });
});

describe('bad connections', () => {
  it('many invalid connections at the same time → the service still responds', async () => {
    const service = await openVariant(findVariant('a'), provider);
    const bad = [
      '\r\n\r\n\r\n',
      'GET',
      '\0\0\0\0',
      'GET / HTTP/1.1\r\nHost',
      'POST /api/private HTTP/1.1\r\nContent-Length: 9\r\n',
    ];
    const connections = Array.from({ length: 200 }, (_, index) => {
      const connection = openRaw(service.port);
      connection.write(bad[index % bad.length] ?? '');
      return connection;
    });
    for (const connection of connections) connection.destroy();
    const answer = await send(service.url, '/api/private', { headers: bearer(await provider.sign()) });
    expect(answer.status).toBe(200);
    expect(await service.stop()).toBe(0);
  });
});
