import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exchange, type RequestOptions, send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { findVariant, openVariant } from '../support/variant-service.ts';

const provider = await useTestProvider();

describe('ERROR_BODY=problem', () => {
  const type = 'application/problem+json';
  const plain = (status: number, phrase: string) => ({ type: 'about:blank', title: phrase, status, detail: phrase });
  let service: OpenedService;
  const get = (path: string, options?: RequestOptions) => send(service.url, path, options);

  beforeAll(async () => {
    service = await openVariant(findVariant('a'), provider, { ERROR_BODY: 'problem', ADMIN_PORT: 'off' });
  });
  afterAll(() => service.stop());

  it.each([
    [404, 'Not Found', '/nowhere', {}],
    [405, 'Method Not Allowed', '/api/private', { method: 'DELETE' }],
    [400, 'Bad Request', '/api\\private', {}],
    [431, 'Request Header Fields Too Large', '/api/private', { headers: ['X-Padding', 'x'.repeat(32 * 1024)] }],
  ] as const)('%i → the phrase in this form, no challenge', async (status, phrase, path, options) => {
    const answer = await get(path, options);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toBe(type);
    expect(answer.headers.has('www-authenticate')).toBe(false);
    expect(answer.json).toEqual(plain(status, phrase));
  });

  it('bytes that are not HTTP → 400 in this form, and the connection is closed', async () => {
    const received = await exchange(service.port, 'HELO example.test\r\n\r\n');
    const [head = '', body = ''] = received.split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(head.toLowerCase()).toContain(`content-type: ${type}`);
    expect(JSON.parse(body)).toEqual(plain(400, 'Bad Request'));
  });
});
