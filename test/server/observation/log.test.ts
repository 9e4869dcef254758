import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RequestLine } from '../../../src/server/observation/log.ts';
import { createLog, type LogOptions } from '../../../src/server/observation/log.ts';
import { useFolder } from '../../support/folder.ts';
import { send } from '../../support/http-client.ts';
import { openService } from '../../support/open-service.ts';

const folder = useFolder();
let files = 0;
const newPath = (): string => join(folder, String(files++));

function openLog(options: Partial<LogOptions> = {}) {
  const file = newPath();
  const fd = openSync(file, 'w');
  const log = createLog({ fd, style: 'json', ...options });
  const finish = async (): Promise<string[]> => {
    await log.end();
    closeSync(fd);
    return readFileSync(file, 'utf8').trimEnd().split('\n');
  };
  return { log, finish };
}

const start = Date.UTC(2026, 0, 2, 3, 4, 5);
const lineOf = (index: number): RequestLine => ({
  ...{ time: start + index, id: String(index), method: 'GET', route: '/a', routeKind: 'route', status: 200 },
  ...{ milliseconds: 0.5, requestId: undefined, traceId: undefined, clientIp: undefined },
  ...{ reason: undefined, wouldRefuse: undefined, facts: undefined },
});

it('closed standard output: pipe without a reader → lost lines are counted', async () => {
  const pipe = newPath();
  execFileSync('mkfifo', [pipe]);
  const read = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const write = openSync(pipe, constants.O_WRONLY);
  closeSync(read);
  const log = createLog({ fd: write, style: 'json' });
  for (let count = 1; count <= 5; count++) {
    log.write('info', 'lost');
    await expect.poll(() => log.countDropped()).toBe(count);
  }
  await log.end();
  closeSync(write);
});

it('a line after the end → not written to the descriptor, which may belong to another file by then', async () => {
  const file = newPath();
  const fd = openSync(file, 'w');
  const log = createLog({ fd, style: 'json' });
  log.write('info', 'first');
  await log.end();
  log.write('info', 'late');
  log.writeRequest(lineOf(0));
  await log.end();
  closeSync(fd);
  expect(readFileSync(file, 'utf8').match(/first|late|request/g)).toEqual(['first']);
  expect(log.countDropped()).toBe(2);
});

describe('lines of requests', () => {
  it.each([false, true])(
    'shared: %s → all are written in order, each with its own time, before what came later',
    async (shared) => {
      const { log, finish } = openLog({ shared });
      for (let i = 0; i < 130; i++) log.writeRequest(lineOf(i));
      log.write('info', 'later');
      log.writeRequest(lineOf(130));
      const lines = (await finish()).map((line): Record<string, unknown> => JSON.parse(line));
      const expected = Array.from({ length: 131 }, (_, i) => [String(i), new Date(start + i).toISOString()]);
      expect(lines.filter(({ event }) => event === 'request').map(({ id, time }) => [id, time])).toEqual(expected);
      expect(lines[130]).toMatchObject({ event: 'later' });
    },
  );

  it('for people → the time of the response', async () => {
    const { log, finish } = openLog({ style: 'pretty' });
    log.writeRequest(lineOf(7));
    expect(await finish()).toEqual([expect.stringContaining('03:04:05.007')]);
  });
});

describe('selection', () => {
  const refused = { reason: 'expired', status: 401 } as const;

  it.each([
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
  ] as const)('LOG_LEVEL=%s → events of %j; refused requests always', async (logLevel, levels) => {
    const { log, finish } = openLog({ selection: { logLevel, logGrants: 'all' } });
    for (const level of ['info', 'warn', 'error'] as const) log.write(level, 'event');
    log.writeRequest({ ...lineOf(1), ...refused });
    const lines = (await finish()).map((line): Record<string, unknown> => JSON.parse(line));
    expect(lines.map(({ event, level }) => (event === 'request' ? 'request' : level))).toEqual([...levels, 'request']);
  });

  it.each([
    [{ logLevel: 'info', logGrants: 'all' }, true],
    [{ logLevel: 'info', logGrants: 'none' }, false],
    [{ logLevel: 'warn', logGrants: 'all' }, false],
  ] as const)('%j → admitted requests are logged: %s', async (selection, logged) => {
    const { log, finish } = openLog();
    log.select(selection);
    expect(log.logsGrants()).toBe(logged);
    await finish();
  });

  it('SIGHUP → level and grants of the settings file', async () => {
    const file = newPath();
    const base = { IDP_DOMAIN: 'localhost:9', IDP_AUDIENCE: 'urn:api' };
    writeFileSync(file, JSON.stringify({ ...base, LOG_GRANTS: 'none' }));
    const service = await openService({ args: ['--settings', file] });
    const requests = () => service.logs.filter(({ event }) => event === 'request').length;
    for (let count = 0; count < 10; count++) await send(service.url, '/api/public');
    expect(requests()).toBe(0);
    writeFileSync(file, JSON.stringify({ ...base, LOG_GRANTS: 'all' }));
    service.signal('SIGHUP');
    await expect
      .poll(async () => {
        await send(service.url, '/api/public');
        return requests();
      })
      .toBeGreaterThan(4);
    expect(await service.stop()).toBe(0);
  });
});
