import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createLog, type LogOptions } from '../../../src/server/observation/log.ts';
import type { RequestLine } from '../../../src/server/observation/request-line.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function openLog(options: Partial<LogOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-log-'));
  folders.push(folder);
  const file = join(folder, 'log');
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

  it('for people → the time at which the request was answered', async () => {
    const { log, finish } = openLog({ style: 'pretty' });
    log.writeRequest(lineOf(7));
    expect(await finish()).toEqual([expect.stringContaining('03:04:05.007')]);
  });
});
