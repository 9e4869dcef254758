import { expect } from 'vitest';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { AccessError } from '../../src/core/failures.ts';
import type { ResourceRequest } from '../../src/core/http/request.ts';
import { algorithms, canVerify, type TokenAlg } from '../../src/core/jose/jws.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { exchange, readStatuses, send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import type { LogLine } from '../support/service-process.ts';
import type { HostileCase, Sent, ServiceName } from './row.ts';
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

const policy = { scopes: ['read:messages'] } as const;
const connection = { remoteAddress: '127.0.0.1', encrypted: false } as const;

/** Options of the library that correspond to the settings of a service. */
export const serverOptions: Readonly<Record<ServiceName, object>> = {
  default: {},
  allAlgorithms: { algorithms: [...algorithms.keys()].filter(canVerify) as TokenAlg[] }, // the keys of the table are the names
  trustedProxy: { trustProxy: ['127.0.0.1'] },
};

/** Creates the resource server of a service, without the service. */
export async function openServer(name: ServiceName, { provider }: World): Promise<ResourceServer> {
  const { issuer, audience, ca } = provider;
  const replay = createMemoryReplayStore({ since: 0 });
  const server = createResourceServer({ issuer, audience, ca, dpop: { replay }, ...serverOptions[name] });
  await server.ready();
  return server;
}

/** Runs one case in process: reason and status, and nothing of what was sent in the response. */
export async function judgeInProcess(each: HostileCase, server: ResourceServer, world: World): Promise<void> {
  const sent = each.make(world);
  const request = readRequest(sent, world);
  if (request === undefined) throw new Error('This case has no request.');
  const { target = '' } = request;
  const judged = await server.judge(request, target.includes('scoped') ? policy : {}, connection);
  const reason = judged instanceof AccessError ? judged.reason : null;
  expect(reason).toBe(each.reason);
  const refusal = server.describeRefusal(judged, request, { policy, connection });
  expect(refusal.status).toBe(each.status);
  for (const trace of [world.marker, ...findTraces(sent)]) expect(JSON.stringify(refusal)).not.toContain(trace);
}

/** The request of a case; `undefined` for raw bytes, which the parser may refuse. */
export function readRequest(sent: Sent, world: World): ResourceRequest | undefined {
  if (typeof sent === 'string') return readRequest({ headers: ['Authorization', `Bearer ${sent}`] }, world);
  if ('raw' in sent) return undefined;
  const { path = '/api/private', method = 'GET', headers: lines } = sent;
  const headers = new Map([['host', new URL(world.url).host]]);
  for (let at = 0; at + 1 < lines.length; at += 2) {
    const name = String(lines[at]).toLowerCase();
    const before = name === 'host' ? undefined : headers.get(name);
    headers.set(name, before === undefined ? String(lines[at + 1]) : `${before}, ${lines[at + 1]}`);
  }
  return {
    method,
    url: `http://${headers.get('host')}${path}`,
    target: path,
    headers: { get: (name) => headers.get(name.toLowerCase()) ?? null },
  };
}

/** Patterns of parts of a token, a proof or a key. */
function findTraces(sent: Sent): readonly string[] {
  return (typeof sent === 'string' ? sent : JSON.stringify(sent)).match(/[\w-]{40,}/g) ?? [];
}

async function attack(service: OpenedService, sent: Sent): Promise<Result> {
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

async function findLine(service: OpenedService, { id, statuses }: Result): Promise<LogLine | undefined> {
  if (id === undefined) return undefined;
  return service.findLog((line) => line['id'] === id && statuses.includes(Number(line['status'])));
}
