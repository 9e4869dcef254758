import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readRules } from '../../src/gate/rules/rules-reader.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { installPacked } from '../support/packed-package.ts';
import { readCodeBlocks } from '../support/pages.ts';
import { startService } from '../support/service-process.ts';

const blocks = readCodeBlocks('docs/agents.md');
const commands = blocks.filter(({ language }) => language === 'console').map(({ text }) => text.trim());

it.each(blocks.filter(({ language }) => language === 'json').map(({ text }) => [text]))(
  'rules of docs/agents.md → no problem: %#',
  async (text) => expect(await readRules({ name: 'rules.json', text })).toMatchObject({ kind: 'rules' }),
);

const gates = commands.filter((command) => command.includes('portcullis gate'));
it.each(gates.map((command) => [command]))('%s → the gate serves the metadata', async (command) => {
  const [, words = ''] = /^npx portcullis gate (.*)$/.exec(command) ?? [];
  const gate = await startService({ command: 'gate', args: words.split(' '), environment: {} });
  try {
    const response = await fetch(`${gate.url}/.well-known/oauth-protected-resource/mcp`);
    expect(await response.json()).toMatchObject({ resource: 'https://mcp.example.com/mcp' });
    const refused = await fetch(`${gate.url}/mcp`, { method: 'POST' });
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining('resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'),
    ]);
  } finally {
    await gate.stop();
  }
});

it('dev of docs/agents.md → provider and gate; token --actor → a token that the gate admits', async () => {
  const command = commands.find((each) => each.includes('portcullis dev')) ?? '';
  const upstream = createServer((request, response) => void request.resume().on('end', () => response.end('tool')));
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  const port = await findFreePort();
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-'));
  const words = command
    .replace(/^MCP_SERVER=true npx portcullis /, '')
    .replaceAll('8000', String(port))
    .replace('--idp-port 4000', '--idp-port 0')
    .replace('127.0.0.1:3000', `127.0.0.1:${(upstream.address() as AddressInfo).port}`) // it listens on TCP
    .split(' ');
  const env = { PATH: process.env['PATH'], XDG_CACHE_HOME: folder, MCP_SERVER: 'true' };
  const child = spawn(process.execPath, ['dist/cli/main.js', ...words], { env });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part) => {
      output += String(part);
    });
  try {
    await expect.poll(() => output, { timeout: 20_000 }).toContain('Stop with');
    const flags = (commands.find((each) => each.includes('--actor')) ?? '').replace('npx portcullis ', '').split(' ');
    const printed = spawn(process.execPath, ['dist/cli/main.js', ...flags], { env });
    let token = '';
    printed.stdout.on('data', (part) => {
      token += String(part);
    });
    await once(printed, 'close');
    const headers = { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read' } });
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers, body });
    expect([response.status, await response.text()]).toEqual([200, 'tool']);
  } finally {
    child.kill();
    await once(child, 'exit');
    upstream.close();
    await rm(folder, { recursive: true });
  }
}, 40_000);

describe('from nothing to a protected server, in an empty folder', () => {
  const running: ChildProcess[] = [];
  afterAll(async () => {
    for (const child of running) {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
  });

  it('its files compile, and its commands run: the client calls the tool through the gate', async () => {
    const packed = await installPacked('agents');
    const clientOf = readCodeBlocks('docs/mcp.md').find(({ file }) => file === 'examples/mcp/client.ts');
    for (const { file, text } of [...blocks, ...(clientOf ? [clientOf] : [])]) {
      if (file !== undefined) await packed.write(file.replace('examples/mcp/', ''), text);
    }
    expect(await packed.compile()).toEqual([]);
    const ports = { server: await findFreePort(), gate: await findFreePort(), idp: await findFreePort() };
    const replacePorts = (text: string) =>
      text.replaceAll('8000', `${ports.gate}`).replaceAll('4000', `${ports.idp}`).replaceAll('3000', `${ports.server}`);
    const base = { PATH: process.env['PATH'] ?? '', XDG_CACHE_HOME: join(packed.folder, 'cache') };
    const start = (words: readonly string[], env: Readonly<Record<string, string>>) => {
      const child = spawn(process.execPath, words, { cwd: packed.folder, env: { ...base, ...env } });
      running.push(child);
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (part) => {
          output += String(part);
        });
      }
      return { child, read: () => output };
    };
    expect(commands).toContain('node unprotected.ts');
    start(['.built/unprotected.js'], { PORT: String(ports.server) });
    const [, flags = ''] = /^MCP_SERVER=true npx portcullis (dev .*)$/m.exec(commands.join('\n')) ?? [];
    const cli = join(packed.folder, '../node_modules/portcullis/dist/cli/main.js');
    const dev = start([cli, ...replacePorts(flags).split(' ')], { MCP_SERVER: 'true' });
    await expect.poll(dev.read, { timeout: 40_000 }).toContain('Stop with');
    const [, certificate = ''] = /certificate +(\S+)/.exec(dev.read()) ?? [];
    const [, secret = ''] = /client secret +(\S+)/.exec(dev.read()) ?? [];
    const [, resource = ''] = /^RESOURCE=(\S+) \S+ \S+ node client\.ts$/m.exec(commands.join('\n')) ?? [];
    const client = start(['.built/client.js'], {
      ...{ RESOURCE: replacePorts(resource), ISSUER: `https://localhost:${ports.idp}/` },
      ...{ NODE_EXTRA_CA_CERTS: certificate, CLIENT_SECRET_FILE: secret },
    });
    await once(client.child, 'close');
    const page = readFileSync('docs/agents.md', 'utf8');
    expect(page).toContain(`It prints \`${client.read().trim()}\`.`);
    expect((await fetch(replacePorts('http://localhost:8000/mcp'), { method: 'POST' })).status).toBe(401);
  }, 120_000);

  it('each package that its files import → installed by its commands', () => {
    const imported = blocks
      .filter(({ file }) => file !== undefined)
      .flatMap(({ text }) => [...text.matchAll(/from '(@[\w-]+\/[\w-]+)/g)].map(([, name = '']) => name));
    expect(imported).toContain('@modelcontextprotocol/server');
    for (const name of imported) expect(commands.join('\n')).toContain(name);
  });

  it('its words → read in five minutes', () => {
    const page = readFileSync('docs/agents.md', 'utf8').replace(/```[\s\S]*?```/g, '');
    expect(page.split(/\s+/).length).toBeLessThan(1200);
  });
});
