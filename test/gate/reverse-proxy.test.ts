import { afterEach, describe, expect, it } from 'vitest';
import { answerHeads, type Proxied, type RawUpstream, sendRaw, startProxied, startRawUpstream } from './proxied.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});
const keep = <T extends { close(): Promise<void> }>(one: T): T => {
  open.push(one);
  return one;
};

describe('what arrives', () => {
  it('a request without a body → its line and headers, and then ours', async () => {
    const upstream: RawUpstream = keep(await startRawUpstream(answerHeads()));
    const identity = { names: ['X-Auth-Subject'], values: ['me'] };
    const proxied: Proxied = keep(await startProxied({ upstream: upstream.url, identity }));
    const answer = await sendRaw(
      proxied.port,
      'GET /a?b HTTP/1.1\r\nHost: api.example\r\nX_Auth_Subject: you\r\nAccept: */*\r\nConnection: close\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(upstream.arrivals).toEqual([
      'GET /a?b HTTP/1.1\r\nhost: api.example\r\nconnection: keep-alive\r\nAccept: */*\r\nVia: 1.1 portcullis\r\n' +
        'X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: api.example\r\n' +
        'X-Auth-Subject: me\r\n\r\n',
    ]);
  });
});
