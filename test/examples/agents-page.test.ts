import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { readRules } from '../../src/gate/rules/rules-reader.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { useFolder } from '../support/folder.ts';
import { listen } from '../support/listening.ts';
import { readCodeBlocks } from '../support/pages.ts';
import { startService } from '../support/service-process.ts';

const page = 'docs/mcp.md';
const folder = useFolder();
const isGate = ({ section }: { readonly section: string }) => section !== 'With the library';
const blocks = readCodeBlocks(page).filter(isGate);
const commands = blocks.filter(({ language }) => language === 'console').map(({ text }) => text.trim());

it.each(blocks.filter(({ language }) => language === 'json').map(({ text }) => [text]))(
  'rules of docs/mcp.md → no problem: %#',
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

it('dev of docs/mcp.md → provider and gate; token --actor → a token that the gate admits', async () => {
  const command = commands.find((each) => each.includes('portcullis dev')) ?? '';
  const upstream = createServer((request, response) => void request.resume().on('end', () => response.end('tool')));
  const { origin, close } = await listen(upstream);
  const port = await findFreePort();
  const words = command
    .replace(/^MCP_SERVER=true npx portcullis /, '')
    .replaceAll('8000', String(port))
    .replace('--idp-port 4000', '--idp-port 0')
    .replace('127.0.0.1:3000', new URL(origin).host)
    .split(' ');
  const env = { PATH: process.env['PATH'], XDG_CACHE_HOME: folder, MCP_SERVER: 'true' };
  const child = spawn(process.execPath, ['dist/cli/main.js', ...words], { env });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part) => {
      output += String(part);
    });
  try {
    await expect.poll(() => output).toContain('Stop with');
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
    await close();
  }
});

it('its words → read in five minutes', () => {
  const [guide = ''] = readFileSync(page, 'utf8').split('\n## With the library\n');
  expect(guide.replace(/```[\s\S]*?```/g, '').split(/\s+/).length).toBeLessThan(1200);
});
