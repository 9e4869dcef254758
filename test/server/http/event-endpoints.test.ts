import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { useFolder } from '../../support/folder.ts';
import { openGate } from '../../support/gate-process.ts';
import { openRaw, readStatuses } from '../../support/http-client.ts';
import { type OpenedService, openService } from '../../support/open-service.ts';
import { useTestProvider } from '../../support/test-provider.ts';

const key = 'k'.repeat(40);
const secret = 'Bearer of-the-transmitter';
const provider = await useTestProvider();
const folder = useFolder();
let settings: Readonly<Record<string, string>>;
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  await writeFile(join(folder, 'key'), key);
  await writeFile(join(folder, 'authorization'), secret);
  const stream = {
    ...{ transmitter: provider.issuer, issuer: provider.issuer },
    ...{ audience: 'https://api.test', authorizationFile: join(folder, 'authorization') },
  };
  await writeFile(join(folder, 'streams'), JSON.stringify({ streams: { idp: stream } }));
  settings = {
    ...{ LOGOUT_CLIENTS: 'app', ADMIN_KEY_FILE: join(folder, 'key'), SHARED_SIGNALS: join(folder, 'streams') },
    ...{ NODE_EXTRA_CA_CERTS: provider.caFile },
  };
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const rules = () => ({
  issuers: { idp: { issuer: provider.issuer, audience: provider.audience } },
  rules: [{ id: 'all', path: '/**' }],
});
type Start = (more: Readonly<Record<string, string>>) => Promise<OpenedService>;
const commands: readonly (readonly [string, Start])[] = [
  [
    'serve',
    (more) => {
      const { UPLOAD_TIMEOUT: _, ...others } = more;
      const own = { ISSUER: provider.issuer, IDP_AUDIENCE: provider.audience };
      return openService({ environment: { ...settings, ...own, ...others } });
    },
  ],
  ['the gate beside a proxy', (more) => openGate(provider, rules(), { ...settings, ...more })],
  [
    'the gate as the proxy',
    (more) => openGate(provider, rules(), { ...settings, UPSTREAM: 'http://127.0.0.1:9', ...more }),
  ],
];

const form = 'Content-Type: application/x-www-form-urlencoded\r\n';
const post = (target: string, more: string): string => `POST ${target} HTTP/1.1\r\nHost: api.test\r\n${more}\r\n`;
const logout = (more = ''): string => post('/backchannel-logout', `${form}Content-Length: 100\r\n${more}`);
const signal = post(
  '/shared-signals/idp',
  `Authorization: ${secret}\r\nContent-Type: application/secevent+jwt\r\nContent-Length: 100\r\n`,
);
const revocation = post(
  '/revocations',
  `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n`,
);
const portOf = (url = ''): number => Number(new URL(url).port);

function open(port: number): ReturnType<typeof openRaw> {
  const connection = openRaw(port);
  closers.push(() => connection.destroy());
  return connection;
}

describe.each(commands)('%s: a body of an event', (name, start) => {
  let service: OpenedService;
  beforeAll(async () => {
    service = await start({ UPLOAD_TIMEOUT: '1' });
  });
  afterAll(() => service?.stop());

  it('that stops after one byte → 408, and the connection is closed', async () => {
    const paths: readonly (readonly [string, number])[] = [
      [logout(), service.port],
      [signal, service.port],
      // Its limit is that of serve, 15 s.
      ...(name === 'serve' ? ([[revocation, portOf(service.adminUrl)]] as const) : []),
    ];
    const received = paths.map(([head, port]) => {
      const connection = open(port);
      connection.write(`${head}a`);
      return connection.closed;
    });
    expect((await Promise.all(received)).map(readStatuses)).toEqual(paths.map(() => [408]));
  });

  it('that arrives byte by byte, and never completely → 408', async () => {
    if (name === 'serve') return; // its limit is one of Node, which the case above shows
    const connection = open(service.port);
    connection.write(logout());
    const timer = setInterval(() => connection.write('a'), 50);
    closers.push(() => clearInterval(timer));
    expect(readStatuses(await connection.closed)).toEqual([408]);
  });

  it.each([
    ['100-continue', [100, 400], 'Expect: 100-continue\r\n'],
    ['100-Continue', [100, 400], 'Expect: 100-Continue\r\n'],
    ['another expectation', [417], 'Expect: 200-ok\r\n'],
    ['100-continue and another expectation', [417], 'Expect: 100-continue, 200-ok\r\n'],
    ['100-continue, and a length over the limit', [413], 'Expect: 100-continue\r\nContent-Length: 20000\r\n'],
  ])('after %s → %j', async (_title, statuses, more) => {
    const connection = open(service.port);
    const head = logout(more);
    connection.write(more.includes('20000') ? head.replace('Content-Length: 100\r\n', '') : head);
    await connection.receive(/HTTP/);
    if (statuses[0] === 100) connection.write('a'.repeat(100));
    const text = await connection.receive(new RegExp(`HTTP/1.1 ${statuses.at(-1)}`));
    expect(readStatuses(text)).toEqual(statuses);
  });
});
