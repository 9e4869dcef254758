import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { discardLimits } from '../../../src/server/http/exchange.ts';
import { useFolder } from '../../support/folder.ts';
import { type OpenedGate, openGate } from '../../support/gate-process.ts';
import type { OpenedService } from '../../support/open-service.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { findVariant, openVariant } from '../../support/variant-service.ts';

const mebibyte = 1024 * 1024;
const block = Buffer.alloc(mebibyte, 'x');
const { bytes: usualLimit } = discardLimits;

/** Sets the bytes that a listener discards: 64 MiB on each path would take a long time. */
const limitTo = (bytes: number): void => void Object.assign(discardLimits, { bytes });

/** More than a listener discards of a body, and what the sockets on the way may hold in addition. */
const countMost = (): number => discardLimits.bytes + 16 * mebibyte;

interface Sent {
  readonly status: number;
  /** Bytes of the body that were written until the listener closed the connection. */
  readonly bytes: number;
}

/** Sends a body without an end, until the connection is closed or too much of it was taken. */
function sendEndless(url: string, head: string): Promise<Sent> {
  const mostBytes = countMost();
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    let received = '';
    let bytes = 0;
    const finish = (): void => {
      socket.destroy();
      resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? 0), bytes });
    };
    const send = (): void => {
      while (bytes < mostBytes) {
        bytes += block.length;
        if (!socket.write(block)) return;
      }
      finish();
    };
    socket.on('data', (data) => {
      received += data.toString('latin1');
    });
    socket
      .on('error', () => {})
      .on('close', finish)
      .on('drain', send);
    socket.write(`${head}\r\nHost: 127.0.0.1\r\nContent-Length: 9000000000\r\nContent-Type: application/json\r\n\r\n`);
    send();
  });
}

const folder = useFolder();

describe('a body without an end, on every path of every listener → bounded', () => {
  let provider: TestProvider;
  let service: OpenedService;
  let gate: OpenedGate;
  let proxy: OpenedGate;
  beforeAll(async () => {
    limitTo(4 * mebibyte);
    provider = await startTestProvider();
    const settings = { LOGOUT_CLIENTS: 'app', ADMIN_PORT: '0', UPLOAD_TIMEOUT: '5' };
    const { issuer, audience } = provider;
    const [key, streams] = [join(folder, 'key'), join(folder, 'streams')];
    writeFileSync(key, 'k'.repeat(40));
    const stream = { transmitter: issuer, issuer, audience: 'https://api.test', authorizationFile: key };
    writeFileSync(streams, JSON.stringify({ streams: { idp: stream } }));
    const events = { ADMIN_KEY_FILE: key, SHARED_SIGNALS: streams };
    service = await openVariant(findVariant('a'), provider, { ...settings, ...events });
    const issuers = { main: { issuer, audience } };
    gate = await openGate(
      provider,
      { issuers, rules: [{ id: 'all', path: '/**' }] },
      { ...settings, TRUST_PROXY: '127.0.0.1' },
    );
    const rules = [
      { id: 'mcp', path: '/mcp', mcp: { tools: { '*': {} } } },
      { id: 'all', path: '/**' },
    ];
    proxy = await openGate(
      provider,
      { issuers, rules },
      { ...settings, UPSTREAM: 'http://127.0.0.1:9', MCP_SERVER: 'true' },
    );
  });
  afterAll(async () => {
    limitTo(usualLimit);
    await Promise.all([service?.stop(), gate?.stop(), proxy?.stop()]);
    await provider?.close();
  });

  const urls = {
    serve: () => service.url,
    'serve, admin': () => service.adminUrl ?? '',
    'beside a proxy': () => gate.url,
    'as the proxy': () => proxy.url,
  };

  async function expectBounded(listener: keyof typeof urls, path: string): Promise<void> {
    const { status, bytes } = await sendEndless(urls[listener](), `POST ${path} HTTP/1.1`);
    expect(bytes).toBeLessThan(countMost());
    // A response before the close, where the reset does not overtake it.
    expect(status === 0 || status >= 200).toBe(true);
  }

  it.each<readonly [keyof typeof urls, string]>([
    ...['/api/public', '/api/private', '/openapi.json', '/docs', '/.well-known/oauth-protected-resource'].map(
      (path) => ['serve', path] as const,
    ),
    ...['/none', '/backchannel-logout', '/shared-signals/idp'].map((path) => ['serve', path] as const),
    ...['/healthz', '/readyz', '/metrics', '/revocations', '/console', '/none'].map(
      (path) => ['serve, admin', path] as const,
    ),
    ...['/forward-auth', '/ext-authz/a', '/none', '/backchannel-logout'].map(
      (path) => ['beside a proxy', path] as const,
    ),
    ...['/a', '/mcp', '/.well-known/oauth-protected-resource/mcp', '/backchannel-logout'].map(
      (path) => ['as the proxy', path] as const,
    ),
  ])('%s: %s', expectBounded);

  it.each(['serve', 'as the proxy'] as const)('%s, with the limit of 64 MiB', async (listener) => {
    limitTo(usualLimit);
    await expectBounded(listener, '/api/public');
  });
});
