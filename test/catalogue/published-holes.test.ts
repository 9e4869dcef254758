import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failures } from '../../src/core/failures.ts';
import { type RawUpstream, startRawUpstream } from '../gate/proxied.ts';
import { type OpenedGate, openGate, tell } from '../support/gate-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { type HoleCase, publishedHoles } from './published-holes.ts';

const provider = await useTestProvider();
let upstream: RawUpstream;
let proxy: OpenedGate;
let beside: OpenedGate;

beforeAll(async () => {
  upstream = await startRawUpstream((socket, arrived) => {
    if (arrived.includes('\r\n\r\n')) socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
  });
  const rules = {
    issuers: { main: { issuer: provider.issuer, audience: provider.audience } },
    rules: [
      { id: 'health', path: '/healthz', access: 'open' },
      { id: 'public', path: '/public/**', access: 'open' },
      { id: 'nested', path: '/nested/*/open', access: 'open' },
      { id: 'open-host', hosts: ['open.example'], path: '/**', access: 'open' },
      { id: 'closed', path: '/closed/**', access: 'deny' },
      { id: 'closed-host', hosts: ['Closed.example'], path: '/**', access: 'deny' },
      {
        id: 'many-hosts',
        hosts: Array.from({ length: 120 }, (_, index) => `host-${index}.example`),
        path: '/**',
        access: 'deny',
      },
      { id: 'all', path: '/**' },
    ],
  };
  [proxy, beside] = await Promise.all([
    openGate(provider, rules, { UPSTREAM: upstream.url }),
    openGate(provider, rules),
  ]);
});
afterAll(async () => {
  await Promise.all([proxy?.stop(), beside?.stop()]);
  await upstream?.close();
});

async function mint({ claims, sign, alg }: NonNullable<HoleCase['token']>): Promise<string> {
  const token = await provider.sign({ ...claims }, sign);
  if (alg === undefined) return token;
  const [header = '', ...rest] = token.split('.');
  const forged = { ...JSON.parse(Buffer.from(header, 'base64url').toString()), alg };
  return [Buffer.from(JSON.stringify(forged)).toString('base64url'), ...rest].join('.');
}

/** Sends the bytes of a request. Returns the status and the id of the response. */
async function call(gate: OpenedGate, target: string, lines: readonly string[]) {
  const socket = connect(gate.port, '127.0.0.1').setEncoding('latin1');
  const fields = Array.from({ length: lines.length / 2 }, (_, i) => `${lines[2 * i]}: ${lines[2 * i + 1]}\r\n`).join(
    '',
  );
  socket.write(Buffer.from(`GET ${target} HTTP/1.1\r\n${fields}\r\n`, 'latin1'));
  let answer = '';
  for await (const piece of socket as AsyncIterable<string>) {
    answer += piece;
    if (answer.includes('\r\n\r\n')) break;
  }
  socket.destroy();
  return { status: Number(answer.split(' ')[1]), id: /^x-request-id: (\S+)/im.exec(answer)?.[1] };
}

/** Checks the status, and the reason in the log. */
async function expectDecision(
  gate: OpenedGate,
  decision: HoleCase['decision'],
  sent: Promise<{ status: number; id: string | undefined }>,
) {
  const { status, id } = await sent;
  if (decision === 'admitted') return expect(status).toBeLessThan(300);
  expect(status).toBe(failures[decision].status);
  const line = await gate.findLog((each) => each['id'] === id);
  expect(line['reason']).toBe(decision);
}

describe.each(publishedHoles)('$product, $id: $hole', ({ here }) => {
  if (typeof here === 'string') {
    it(`without an equal surface → ${here}`, () => expect(here).toMatch(/\.$/));
    return;
  }
  it.each(here)('$name → $decision', async (row) => {
    const { target = '/admin', host = 'api.example', headers = [], token, decision, arrives = {} } = row;
    const credentials = token === undefined ? [] : ['Authorization', `Bearer ${await mint(token)}`];
    const own = [...headers, ...credentials];
    const before = upstream.arrivals.length;
    const close = own.some((name) => name.toLowerCase() === 'connection') ? [] : ['Connection', 'close'];
    await expectDecision(proxy, decision, call(proxy, target, ['Host', host, ...own, ...close]));
    const arrived = upstream.arrivals.slice(before).join('');
    if (decision !== 'admitted') expect(arrived).toBe('');
    for (const [name, value] of Object.entries(arrives)) {
      const values = arrived.split('\r\n').flatMap((line) => {
        const [, field = '', content = ''] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
        return field.toLowerCase() === name ? [content] : [];
      });
      expect(values, name).toEqual(value === undefined ? [] : [value]);
    }
    // The proxy describes the request, and passes on the headers of the client.
    const told = tell({ host, path: target, headers: own });
    await expectDecision(
      beside,
      row.beside ?? decision,
      call(beside, '/forward-auth', ['Host', 'gate', ...told, ...close]),
    );
  });
});
