import { expect } from 'vitest';
import { exchange, readStatuses, send } from '../support/http-client.ts';
import type { LogLine, ServiceProcess } from '../support/service-process.ts';
import type { HostileCase, Sent } from './hostile-case.ts';
import type { World } from './world.ts';

/** The observed part of a response, independent of the transport. */
interface Result {
  /** One for each response on the connection; 0 without a response. */
  readonly statuses: readonly number[];
  readonly text: string;
  /** X-Request-Id of the first response, which is also in the log line. */
  readonly id: string | undefined;
}

/** Runs one case against the service it is for: status, reason in the log, and nothing of what was sent in either. */
export async function judgeCase(
  { service: name, make, following = [], early, ...late }: HostileCase,
  world: World,
): Promise<void> {
  const service = world.service(name);
  const sent = make(world);
  const result = await attack(service, sent);
  const { status, reason } = early !== undefined && early.status === result.statuses[0] ? early : late;
  expect(result.statuses).toEqual([status, ...following]);
  const line = await findLine(service, result);
  // Where the parser refuses, no line is written: nothing of the request is known.
  expect(line?.['reason'] ?? null).toBe(reason);
  for (const trace of [world.marker, ...findTraces(sent)]) {
    expect(result.text).not.toContain(trace);
    expect(JSON.stringify(line ?? {})).not.toContain(trace);
  }
}

/** Patterns of parts of a token, a proof or a key. */
export function findTraces(sent: Sent): readonly string[] {
  return (typeof sent === 'string' ? sent : JSON.stringify(sent)).match(/[\w-]{40,}/g) ?? [];
}

async function attack(service: ServiceProcess, sent: Sent): Promise<Result> {
  if (typeof sent === 'string') return attack(service, { headers: ['Authorization', `Bearer ${sent}`] });
  if ('raw' in sent) {
    const text = await exchange(service.port, sent.raw);
    const statuses = readStatuses(text);
    return { statuses: statuses.length === 0 ? [0] : statuses, text, id: /x-request-id: (\S+)/i.exec(text)?.[1] };
  }
  const { path = '/api/private', ...options } = sent;
  const { status, text, headers } = await send(service.url, path, options);
  return { statuses: [status], text, id: headers.get('x-request-id') };
}

async function findLine(service: ServiceProcess, { id, statuses }: Result): Promise<LogLine | undefined> {
  if (id === undefined) return undefined;
  return service.findLog((line) => line['id'] === id && statuses.includes(Number(line['status'])));
}
