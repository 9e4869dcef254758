import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createBackoff } from '../../../src/server/process/supervisor.ts';
import { useFolder } from '../../support/folder.ts';
import { type Answer, openRaw, readStatuses, send } from '../../support/http-client.ts';
import { findChildren, isGone } from '../../support/processes.ts';
import { type LogLine, type ServiceProcess, superviseChild } from '../../support/service-process.ts';
import { startTestProvider, useTestProvider } from '../../support/test-provider.ts';
import { createTestCertificates } from '../../support/tls.ts';
import {
  bearer,
  findLine,
  findVariant,
  readEnvironment,
  startInVain,
  startVariant,
} from '../../support/variant-service.ts';

const provider = await useTestProvider();
const folder = useFolder();

const shared = { WORKERS: '2', DPOP_ENABLED: 'false' };
/** Waits until it holds: `expect.poll` is for tests that follow each other. */
const until = (holds: () => boolean | Promise<boolean>) =>
  vi.waitFor(async () => expect(await holds()).toBe(true), { timeout: 60_000, interval: 5 });
const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

const started: ServiceProcess[] = [];
afterAll(() => Promise.all(started.map((service) => service.kill())));

/** Starts two processes, and waits until both are ready. */
async function startTwo(environment: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  const service = await startVariant(findVariant('a'), provider, { ...shared, ...environment });
  started.push(service);
  await awaitBoth(service);
  return service;
}

/** Starts the service, and does not wait until it listens. */
function begin(stdio: StdioOptions, more: Readonly<Record<string, string>> = {}) {
  const environment = { ...readEnvironment(findVariant('a'), provider), ...shared, ...more };
  const env = { ...environment, PATH: process.env['PATH'], PORT: '0', ADMIN_PORT: '0' };
  const child = spawn(process.execPath, [main, 'serve'], { stdio, env });
  return { child, ended: superviseChild(child) };
}

const listening = ({ logs }: ServiceProcess): readonly LogLine[] => logs.filter(({ event }) => event === 'listening');
/** Admin listeners of the processes that started last. */
const adminsOf = (service: ServiceProcess): readonly string[] =>
  listening(service).map((line) => String(line['admin_url']));
const readiness = (admin: string): Promise<number> =>
  send(admin, '/readyz').then(
    ({ status }) => status,
    () => 0,
  );
const count = (service: ServiceProcess, event: string): number =>
  service.logs.filter((line) => line.event === event).length;

async function awaitBoth(service: ServiceProcess): Promise<void> {
  await until(async () => {
    const statuses = await Promise.all(adminsOf(service).map(readiness));
    return statuses.filter((each) => each === 200).length === 2;
  });
}

/** Opens a connection that has one response and half of another request. */
async function hold(port: number) {
  const request = 'GET /api/public HTTP/1.1\r\nHost: api.example.test\r\n';
  const connection = openRaw(port);
  connection.write(`${request}\r\n${request}`);
  await connection.receive(/"Public endpoint/);
  return connection;
}

async function occupyPort(preferred = 0): Promise<Server & { readonly port: number }> {
  const server = createServer().listen(preferred, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { readonly port: number }; // it listens on TCP
  return Object.assign(server, { port });
}

/** Finds two neighbours below the ports that the system chooses for the connections of other tests. */
async function findNeighbours(): Promise<number> {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  try {
    for (const each of [port, port + 1]) (await occupyPort(each)).close();
    return port;
  } catch {
    return findNeighbours();
  }
}

describe('the delay of a restart', () => {
  it.each([
    ['never ready', [1, 2, 4, 8, 16, 30, 30], undefined],
    ['ready for 59 s each time', [1, 2, 4, 8, 16, 30, 30], 59],
    ['ready for 60 s each time', [1, 1, 1], 60],
  ])('%s → %j s', (_name, expected, seconds) => {
    const backoff = createBackoff();
    let now = 1000;
    const delays = expected.map(() => {
      if (seconds !== undefined) backoff.noteReady(now);
      now += seconds ?? 3600;
      return backoff.next(now);
    });
    expect(delays).toEqual(expected);
  });

  it('ready for a minute once, then never ready → 1, and longer each time', () => {
    const backoff = createBackoff();
    expect([backoff.next(0), backoff.next(0)]).toEqual([1, 2]);
    backoff.noteReady(10);
    expect([backoff.next(70), backoff.next(500), backoff.next(900)]).toEqual([1, 2, 4]);
  });
});

const countRefused = async (admin: string): Promise<number> => {
  const { body }: Answer = await send(admin, '/metrics');
  return Number(/^portcullis_refusals_total\{reason="missing_credentials",issuer=""\} (\d+)$/m.exec(body)?.[1] ?? 0);
};

describe('two processes of one service', () => {
  let service: ServiceProcess;
  beforeAll(async () => {
    service = await startTwo({ AUDIT_LOG: join(folder, 'reopened'), LOG_IDENTITY: 'off' });
  });

  it('PORT=0, ADMIN_PORT=0 → one port, an admin listener and metrics for each', async () => {
    expect(listening(service).map(({ url }) => url)).toEqual([service.url, service.url]);
    expect(new Set(adminsOf(service)).size).toBe(2);
    expect(adminsOf(service)).toContain(service.adminUrl);
    const answers = await Promise.all(Array.from({ length: 100 }, () => send(service.url, '/api/private')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    for (const answer of answers) expect((await findLine(service, answer))['reason']).toBe('missing_credentials');
    const counts = await Promise.all(adminsOf(service).map(countRefused));
    expect(counts.reduce((sum, each) => sum + each)).toBe(100);
    expect(counts).not.toContain(0);
    const headers = bearer(await provider.sign());
    const admitted = await Promise.all(
      Array.from({ length: 20 }, () => send(service.url, '/api/private', { headers })),
    );
    expect(new Set(admitted.map(({ status }) => status))).toEqual(new Set([200]));
  });

  it('SIGHUP to each process and the supervisor → one reload in each; again later → another', async () => {
    for (const pid of [...findChildren(service.pid), service.pid]) process.kill(pid, 'SIGHUP');
    await until(() => count(service, 'audit_reopened') === 2);
    const repeated = setInterval(() => service.signal('SIGHUP'), 100);
    await until(() => count(service, 'audit_reopened') === 4);
    clearInterval(repeated);
    expect((await send(service.url, '/api/public')).status).toBe(200);
    expect(count(service, 'worker_exited')).toBe(0);
  });

  it('SIGTERM to one → it completes its requests, and is started again', async () => {
    const held = await Promise.all([0, 1, 2, 3].map(() => hold(service.port)));
    process.kill(findChildren(service.pid)[0] ?? 0, 'SIGTERM');
    await service.findLog(({ event }) => event === 'shutting_down');
    for (const connection of held) connection.write('Connection: close\r\n\r\n');
    for (const { closed } of held) expect(readStatuses(await closed)).toEqual([200, 200]);
    await service.findLog(({ event, code }) => event === 'worker_exited' && code === 0);
    await awaitBoth(service);
  });

  it('SIGTERM → each process completes its requests, exit 0', async () => {
    const children = findChildren(service.pid);
    const held = await Promise.all([0, 1, 2, 3].map(() => hold(service.port)));
    service.signal('SIGTERM');
    await until(() => count(service, 'shutting_down') === 3);
    for (const connection of held) connection.write('\r\n');
    for (const { closed } of held) expect(readStatuses(await closed)).toEqual([200, 200]);
    expect(await service.ended).toEqual({ code: 0, signal: null });
    expect(children.every(isGone)).toBe(true);
    expect(service.stderr).toBe('');
  });
});

// Most of their time is waiting: for a restart, a signal or a drain.
describe.concurrent('two processes', () => {
  it('ADMIN_PORT, AUDIT_LOG and CONSOLE_KEY_FILE → the next port and the suffix .2 for the second process', async () => {
    const free = await findNeighbours();
    const [audit, key] = [join(folder, 'audit.jsonl'), join(folder, 'console-key')];
    const service = await startTwo({
      ...{ ADMIN_PORT: String(free), AUDIT_LOG: audit, LOG_IDENTITY: 'off' },
      ...{ CONSOLE: 'on', CONSOLE_KEY_FILE: key },
    });
    const ports = adminsOf(service).map((url) => Number(new URL(url).port));
    expect(ports.toSorted((one, other) => one - other)).toEqual([free, free + 1]);
    const files = [audit, `${audit}.2`];
    // The kernel chooses the process, and may choose one for many connections.
    let sent = 0;
    while (sent < 6000 && (await Promise.all(files.map((file) => stat(file)))).some(({ size }) => size === 0)) {
      await Promise.all(Array.from({ length: 60 }, () => send(service.url, '/api/private')));
      sent += 60;
    }
    const keys = await Promise.all([key, `${key}.2`].map((file) => readFile(file, 'utf8')));
    expect(keys[0]).not.toBe(keys[1]);
    expect(await service.stop()).toBe(0);
    const lines = await Promise.all(files.map(async (file) => (await readFile(file, 'utf8')).split('\n')));
    expect(lines.flat().filter((line) => line !== '')).toHaveLength(sent);
    expect(lines.map(({ length }) => length)).not.toContain(1);
    await expect(stat(`${key}.2`)).rejects.toThrow('ENOENT');
  });

  it('HOST=unix:/path → one socket for both, also after a kill; none after the end', async () => {
    const path = join(folder, 'api.sock');
    const killed = await startVariant(findVariant('a'), provider, { ...shared, HOST: `unix:${path}`, WORKERS: '1' });
    await killed.kill();
    const service = await startTwo({ HOST: `unix:${path}` });
    expect(listening(service).map(({ url }) => url)).toEqual([`unix:${path}`, `unix:${path}`]);
    expect((await stat(path)).isSocket()).toBe(true);
    const { end } = await startInVain(startVariant(findVariant('a'), provider, { ...shared, HOST: `unix:${path}` }));
    expect(end.code).toBe(69);
    expect((await stat(path)).isSocket()).toBe(true);
    expect(await service.stop()).toBe(0);
    await expect(stat(path)).rejects.toThrow('ENOENT');
  });

  it('a socket of systemd → shared, and still there when both processes are replaced; READY=1 once', async () => {
    const notes = join(folder, 'notes');
    await writeFile(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$*" >> ${notes}\n`, { mode: 0o755 });
    const socket = await occupyPort();
    const { fd } = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle; // not in the types
    const script = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"';
    const child = spawn('/bin/sh', ['-c', script, process.execPath, main, 'serve'], {
      stdio: ['ignore', 'ignore', 'inherit', fd, 'ipc'],
      env: {
        ...readEnvironment(findVariant('a'), provider),
        ...{
          ...shared,
          PATH: `${folder}:${process.env['PATH']}`,
          NOTIFY_SOCKET: '/run/none',
          ADMIN_PORT: '0',
          PORT: '1',
        },
      },
    });
    const ended = superviseChild(child);
    const [{ url }] = (await once(child, 'message')) as [{ readonly url: string }];
    socket.close();
    expect(url).toBe(`http://127.0.0.1:${socket.port}`);
    await until(async () => (await readFile(notes, 'utf8').catch(() => '')).includes('READY=1'));
    for (const pid of findChildren(child.pid ?? 0)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The notification was a child too, and has ended.
      }
    }
    const answer = await send(url, '/api/public'); // waits in the socket for the next process
    expect(answer.status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toEqual({ code: 0, signal: null });
    const said = (await readFile(notes, 'utf8')).split('\n').filter(Boolean);
    expect(said.toSorted()).toEqual([`--pid=${child.pid} READY=1`, `--pid=${child.pid} STOPPING=1`]);
  });
});

describe.concurrent('a process that ends', () => {
  it('killed twice → started again after 1 s, then 2 s; the other one serves meanwhile', async () => {
    const service = await startTwo();
    const [victim = 0, ...others] = findChildren(service.pid);
    process.kill(victim, 'SIGKILL');
    const line = await service.findLog(({ event }) => event === 'worker_exited');
    expect(line).toMatchObject({ level: 'error', signal: 'SIGKILL', restart_in_ms: 1000 });
    const headers = bearer(await provider.sign());
    for (let i = 0; i < 10; i++) expect((await send(service.url, '/api/private', { headers })).status).toBe(200);
    await awaitBoth(service);
    const [next = 0] = findChildren(service.pid).filter((pid) => !others.includes(pid));
    process.kill(next, 'SIGKILL');
    const second = await service.findLog((each) => each.event === 'worker_exited' && each !== line);
    expect(second).toMatchObject({ worker: line['worker'], restart_in_ms: 2000 });
    expect(listening(service).map(({ url }) => url)).toEqual([service.url, service.url, service.url]);
    service.signal('SIGINT'); // while it is about to start again
    expect((await service.ended).code).toBe(0);
    expect(count(service, 'worker_exited')).toBe(2);
  });

  it('a file that is invalid when it starts again (78) → tried again until the file is valid', async () => {
    const { cert, key } = await createTestCertificates();
    const [TLS_CERT, TLS_KEY] = [join(folder, 'crt'), join(folder, 'key')];
    await Promise.all([writeFile(TLS_CERT, cert), writeFile(TLS_KEY, key)]);
    const service = await startTwo({ TLS_CERT, TLS_KEY });
    await writeFile(TLS_KEY, 'no key');
    process.kill(findChildren(service.pid)[0] ?? 0, 'SIGKILL');
    expect(await service.findLog(({ code }) => code === 78)).toMatchObject({
      event: 'worker_exited',
      restart_in_ms: 2000,
    });
    await writeFile(TLS_KEY, key);
    await awaitBoth(service);
    expect(await service.stop()).toBe(0);
  });
});

describe.concurrent('the first start', () => {
  it('variant B, provider unreachable → exit 69 with the reason', async () => {
    const dead = await startTestProvider();
    await dead.down();
    const { end, stderr } = await startInVain(startVariant(findVariant('b'), dead, { WORKERS: '2' }));
    await dead.close();
    expect(end).toEqual({ code: 69, signal: null });
    expect(stderr).toMatch(/^portcullis: the keys of .* could not be loaded, .*: The identity provider .*\.$/m);
  });

  it.each([
    ['PORT', 0],
    ['ADMIN_PORT', 1],
  ])(
    '%s is in use (%i after the first port) → exit 69 with the reason, and no process is left',
    async (setting, after) => {
      const server = await occupyPort();
      const environment = { ...shared, [setting]: String(server.port - after), DRAIN_DELAY: '300' };
      const { end, stderr, logs } = await startInVain(startVariant(findVariant('a'), provider, environment));
      server.close();
      expect(end).toEqual({ code: 69, signal: null });
      const expected = `^portcullis: cannot listen on 127\\.0\\.0\\.1:\\d+; .*${setting}`;
      expect(stderr).toMatch(new RegExp(expected, 'm'));
      expect(logs.filter(({ event }) => event === 'worker_exited')).toEqual([]);
    },
  );

  it('SIGTERM before a process listens → exit 0, and no process is left', async () => {
    const { child, ended } = begin(['ignore', 'ignore', 'inherit']);
    await until(() => findChildren(child.pid ?? 0).length === 2);
    const children = findChildren(child.pid ?? 0);
    child.kill('SIGTERM');
    expect(await ended).toEqual({ code: 0, signal: null });
    expect(children.every(isGone)).toBe(true);
  });
});

describe.concurrent('signals', () => {
  it('SIGTERM to each process and the supervisor, as of a group → one signal; the drain serves new connections', async () => {
    const service = await startTwo({ DRAIN_DELAY: '6' });
    for (const pid of [...findChildren(service.pid), service.pid]) process.kill(pid, 'SIGTERM');
    await until(() => count(service, 'draining') === 2);
    expect(await Promise.all(adminsOf(service).map(readiness))).toEqual([503, 503]);
    for (let i = 0; i < 20; i++) expect((await send(service.url, '/api/public')).status).toBe(200);
    expect(count(service, 'shutting_down')).toBe(0);
    expect((await service.ended).code).toBe(0);
    expect(count(service, 'worker_exited')).toBe(0);
  });

  it('a second SIGTERM after a second → exit 143 at once', async () => {
    const service = await startTwo({ DRAIN_DELAY: '300' });
    const children = findChildren(service.pid);
    service.signal('SIGTERM');
    await until(() => count(service, 'draining') === 2);
    // One within a second of the first is the same signal.
    const repeated = setInterval(() => service.signal('SIGTERM'), 200);
    const end = await service.ended;
    clearInterval(repeated);
    expect(end).toEqual({ code: 143, signal: null });
    expect(children.every(isGone)).toBe(true);
  });

  it('SIGHUP while a process starts → it ends none, and reloads it once it is ready', async () => {
    const service = await startTwo({ AUDIT_LOG: join(folder, 'starting'), LOG_IDENTITY: 'off' });
    const [victim = 0, other] = findChildren(service.pid);
    process.kill(victim, 'SIGKILL');
    // The killed one is a child until the supervisor has noticed its end.
    const isNew = (pid: number): boolean => pid !== victim && pid !== other;
    await until(() => findChildren(service.pid).filter(isNew).length === 1);
    service.signal('SIGHUP');
    await until(() => count(service, 'audit_reopened') === 2);
    expect(count(service, 'worker_exited')).toBe(1);
    expect(await service.stop()).toBe(0);
  });
});

describe.concurrent('a signal that a process cannot take', () => {
  it('SIGTERM while one of the processes is stopped → it is killed, and the supervisor ends', async () => {
    const service = await startTwo();
    const children = findChildren(service.pid);
    process.kill(children[0] ?? 0, 'SIGSTOP');
    service.signal('SIGTERM');
    expect(await service.ended).toEqual({ code: 0, signal: null });
    expect(children.every(isGone)).toBe(true);
    expect(count(service, 'worker_killed')).toBe(1);
  });

  it.each([['1'], ['2']])('WORKERS=%s, SIGHUP while the command is loaded → it starts', async (WORKERS) => {
    // The first listener of the command: a preloaded module cannot signal earlier.
    const early = `process.once('newListener', () => process.nextTick(() => process.kill(process.pid, 'SIGHUP')))`;
    const NODE_OPTIONS = `--import "data:text/javascript,${encodeURIComponent(early)}"`;
    const more = { WORKERS, NODE_OPTIONS, AUDIT_LOG: join(folder, `early-${WORKERS}`), LOG_IDENTITY: 'off' };
    const service = await startVariant(findVariant('a'), provider, { ...shared, ...more });
    started.push(service);
    expect(await service.stop()).toBe(0);
    expect(count(service, 'audit_reopened')).toBe(Number(WORKERS));
    expect(count(service, 'worker_exited')).toBe(0);
  });
});

describe.concurrent('the supervisor is killed', () => {
  it('serving, with a drain of 300 s → requests are completed, and the processes end', async () => {
    const service = await startTwo({ DRAIN_DELAY: '300' });
    const children = findChildren(service.pid);
    const held = await Promise.all([0, 1, 2, 3].map(() => hold(service.port)));
    process.kill(service.pid, 'SIGKILL');
    await until(() => count(service, 'shutting_down') === 2);
    for (const connection of held) connection.write('\r\n');
    for (const { closed } of held) expect(readStatuses(await closed)).toEqual([200, 200]);
    await until(() => children.every(isGone));
    expect(service.stderr).toBe('');
  });

  it('while it drains → the drain ends too', async () => {
    const service = await startTwo({ DRAIN_DELAY: '300' });
    const children = findChildren(service.pid);
    service.signal('SIGTERM');
    await until(() => count(service, 'draining') === 2);
    process.kill(service.pid, 'SIGKILL');
    await until(() => children.every(isGone));
  });

  it('while the processes start → they end', async () => {
    const { child, ended } = begin(['ignore', 'ignore', 'ignore']);
    await until(() => findChildren(child.pid ?? 0).length === 2);
    const children = findChildren(child.pid ?? 0);
    child.kill('SIGKILL');
    await ended;
    await until(() => children.every(isGone));
  });

  it('another parent, while its only process starts → exit 0, nothing on standard error', async () => {
    const { child } = begin(['ignore', 'ignore', 'pipe', 'ipc'], { WORKERS: '1' });
    const ended = Promise.all([once(child, 'exit'), child.stderr?.toArray()]);
    child.disconnect();
    expect(await ended).toEqual([[0, null], []]);
  });
});
