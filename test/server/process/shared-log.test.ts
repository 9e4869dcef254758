import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';
import { exchange, readStatuses } from '../../support/http-client.ts';

const entry = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const connections = 100;
const requestsOfEach = 100;

it('two processes, one log, a reader that is late → every line is whole', async () => {
  const service = spawn(process.execPath, [entry, 'serve'], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: {
      ...{ PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: 'off', WORKERS: '2' },
      ...{ IDP_DOMAIN: '127.0.0.1:9', IDP_AUDIENCE: 'urn:test', DPOP_ENABLED: 'false' },
    },
  });
  const [{ url }] = (await once(service, 'message')) as [{ url: string }]; // its announcement
  const port = Number(new URL(url).port);
  const request = 'GET /api/public HTTP/1.1\r\nHost: a\r\n';
  const bytes = `${`${request}\r\n`.repeat(requestsOfEach - 1)}${request}Connection: close\r\n\r\n`;
  // More than the pipe holds: each process waits in the middle of what it writes.
  const received = await Promise.all(Array.from({ length: connections }, () => exchange(port, bytes)));
  const answered = received.flatMap(readStatuses).length;
  expect(answered).toBe(connections * requestsOfEach);
  if (service.stdout === null) throw new Error('The output of the service is no pipe.');
  let written = '';
  service.stdout.setEncoding('utf8').on('data', (piece: string) => {
    written += piece;
  });
  // A process that ends waits for its reader only so long.
  await vi.waitFor(() => expect(written.split('"event":"request"').length - 1).toBe(answered), 20_000);
  service.kill('SIGTERM');
  await once(service.stdout, 'end');
  const lines = written.split('\n').filter((line) => line !== '');
  const broken = lines.filter((line) => !isJson(line));
  expect(broken).toEqual([]);
  expect(lines.filter((line) => JSON.parse(line).event === 'request')).toHaveLength(answered);
});

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
