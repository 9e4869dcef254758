import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);
const preload = new URL('overwritten-buffers.js', import.meta.url).href;

/** Runs programs with the preload, one after the other. Each prints what it has kept of `sent`. */
async function readKept(programs: readonly string[]): Promise<readonly string[]> {
  const script = `
    import { once } from 'node:events';
    import { createServer, request } from 'node:http';
    import { connect, createServer as createPlainServer, Socket } from 'node:net';
    import { setImmediate, setTimeout } from 'node:timers/promises';
    const pass = async () => {
      await setTimeout(20);
      for (let i = 0; i < 20; i++) await setImmediate();
    };
    const open = async (server) => (await once(server.listen(0, '127.0.0.1'), 'listening'), server.address().port);
    let printed = '';
    const print = (kept) => (printed += Buffer.from(kept).toString('latin1'));
    const all = [];
    for (const run of [${programs.map((program) => `async () => { ${program} }`).join()}]) {
      printed = '';
      await run();
      all.push(printed);
    }
    process.stdout.write(JSON.stringify(all));
    process.exit();
  `;
  const words = ['--import', preload, '--input-type=module', '--eval', script];
  const { stdout } = await run(process.execPath, words, { env: { PATH: process.env['PATH'] } });
  return JSON.parse(stdout) as readonly string[]; // written above
}

/** A server that is sent `sent`; the first read is in \`chunk\`, and its connection in \`socket\`. */
const received = `
  const port = await open(createPlainServer((socket) => receive(socket)));
  const received = new Promise((resolve) => (globalThis.receive = (socket) => {
    socket.once('data', (chunk) => { socket.pause(); resolve({ socket, chunk }); });
  }));
  const client = connect(port, '127.0.0.1').on('error', () => {});
  client.write('sent');
  const { socket, chunk } = await received;
`;
const upgrade = 'GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: Upgrade\\r\\nUpgrade: x\\r\\n\\r\\nsent';
const overwritten = '\xdb\xdb\xdb\xdb';

const cases: readonly (readonly [claim: string, program: string, kept: string])[] = [
  ['kept over event-loop iterations', `${received} await pass(); print(chunk);`, overwritten],
  ['a part of it kept', `${received} const part = chunk.subarray(1); await pass(); print(part);`, '\xdb\xdb\xdb'],
  ['a copy of it kept', `${received} const copy = Buffer.from(chunk); await pass(); print(copy);`, 'sent'],
  [
    'returned to its stream, and read later',
    `${received} socket.unshift(chunk); await pass(); print(socket.read());`,
    'sent',
  ],
  [
    'pushed into another stream, and read later',
    `${received} const other = new Socket(); other.push(chunk); await pass(); print(other.read());`,
    'sent',
  ],
  [
    'in a write that is pending',
    `${received}
      client.pause();
      socket.write(Buffer.alloc(20_000_000));
      socket.write(chunk);
      socket.end();
      await pass();
      let last;
      for await (const each of client) last = Buffer.from(each);
      print(last.subarray(-4));`,
    'sent',
  ],
  [
    'a body that is paused, and read later',
    `const server = createServer();
      const port = await open(server);
      request({ port, method: 'POST' }).end('sent');
      const [incoming] = await once(server, 'request');
      await pass();
      for await (const each of incoming) print(each);`,
    'sent',
  ],
  [
    'the first bytes of an upgrade',
    `const server = createServer();
      const port = await open(server);
      connect(port, '127.0.0.1').write('${upgrade}');
      const [, , head] = await once(server, 'upgrade');
      await pass();
      print(head);`,
    overwritten,
  ],
  [
    'the one buffer of a socket with onread',
    `const port = await open(createPlainServer((socket) => socket.write('sent')));
      const kept = await new Promise((resolve) => {
        const onread = { buffer: Buffer.alloc(100), callback: (length, buffer) => resolve(buffer.subarray(0, length)) };
        connect({ port, host: '127.0.0.1', onread });
      });
      await pass();
      print(kept);`,
    overwritten,
  ],
];
const kept = await readKept(cases.map(([, program]) => program));

it.each(cases.map(([claim, , expected], index) => [claim, kept[index], expected]))(
  'a buffer that Node has handed out: %s',
  (_claim, seen, expected) => expect(seen).toBe(expected),
);
