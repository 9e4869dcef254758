// Runs the commands of a terminal session with every tool, which `npm run docs` writes into docs/explain.md. A test records
// it again and compares.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolder } from '../../shared/folder.js';

export const page = 'docs/explain.md';
export const sessionPlace = /<!-- session -->\n([\s\S]*?)<!-- end -->/;
const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

const scopes = (id, methods, scope) => ({ id, path: '/orders/**', methods, scopes: [scope] });
const issuers = { main: { issuer: 'https://idp.example/', audience: 'https://api.example/' } };
const health = { id: 'health', path: '/health', access: 'open' };
const decided = {
  time: '2026-01-02T03:04:05.006Z',
  event: 'decision',
  id: 'pX3kQa-7hB2mN9cT0wL',
  decision: 'admitted',
};
const call = {
  method: 'POST',
  host: 'api.example',
  path: '/orders/5',
  status: 201,
  rule: 'orders',
  rules: 'a'.repeat(64),
};
const files = {
  'rules.json': JSON.stringify({ issuers, rules: [health, scopes('orders', ['GET', 'POST'], 'read:orders')] }, null, 2),
  'cases.json': JSON.stringify([
    { url: 'https://api.example/orders/17', expect: 'missing_credentials', rule: 'orders' },
    { url: 'https://api.example/orders/17', token: { scope: 'read:orders' }, expect: 'allowed' },
  ]),
  'audit.jsonl': JSON.stringify({
    ...decided,
    ...call,
    issuer: 'https://idp.example/',
    entry: 'main',
    scheme: 'Bearer',
    scopes: ['read:orders'],
  }),
  'planned.json': JSON.stringify({
    issuers,
    rules: [health, scopes('orders', ['GET'], 'read:orders'), scopes('changes', ['POST'], 'write:orders')],
  }),
};

/** The commands that are shown. */
const commands = [
  'npx portcullis token --expired | npx portcullis explain',
  'npx portcullis doctor',
  'npx portcullis revoke --sub alice --issuer https://localhost:9443/ --admin http://127.0.0.1:9000',
  'npx portcullis rules check rules.json',
  'npx portcullis rules test rules.json cases.json',
  'npx portcullis rules which rules.json GET https://api.example/orders/17',
  'npx portcullis rules replay audit.jsonl planned.json',
];

/** Runs the session. Resolves with the Markdown of its blocks. */
export async function recordSession() {
  const home = makeFolder('session');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), `${text}\n`);
  const keyFile = join(home, 'admin-key');
  writeFileSync(keyFile, randomBytes(32).toString('hex'), { mode: 0o600 });
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    XDG_CACHE_HOME: join(home, '.cache'),
    NO_COLOR: '1',
    ADMIN_KEY_FILE: keyFile,
  };
  const start = (...args) =>
    spawn(process.execPath, [main, ...args], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const dev = start('dev', '--port', '0', '--idp-port', '0');
  try {
    const started = await readUntil(dev, /Ctrl-C\.\n/);
    const [, issuer, service, admin] =
      /^Identity provider +https:\/\/(\S+)\/[\s\S]*^Service +http:\/\/(\S+)[\s\S]*^Admin +http:\/\/(\S+)/m.exec(
        started,
      ) ?? [];
    if (admin === undefined) throw new Error(`dev does not start:\n${started}`);
    const shown = [
      [issuer, 'localhost:9443'],
      [service, '127.0.0.1:8000'],
      [admin, '127.0.0.1:9000'],
      [home, '~'],
    ];
    const show = (text) => steady(shown.reduce((all, [own, usual]) => all.replaceAll(own, usual), text));
    const real = (text) => shown.reduce((all, [own, usual]) => all.replaceAll(usual, own), text);
    const run = async (command) => {
      const npx = `npx() { shift; "${process.execPath}" "${main}" "$@"; }`;
      const child = spawn('sh', ['-c', `${npx}; { ${real(command)}; } 2>&1`], {
        cwd: home,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      return readUntil(child);
    };
    const watch = start('watch');
    const watching = readUntil(watch, /\n\n/);
    await readUntil(watch, /Ctrl-C\.\n/);
    const token = await run('npx portcullis token --audience https://api.portcullis.example 2>/dev/null');
    await fetch(`http://${service}/api/private`, { headers: { authorization: `Bearer ${token.trim()}` } });
    const watched = await watching;
    watch.kill();
    const [provider = ''] = /^Identity provider[\s\S]*?^ {2}console key.*\n/m.exec(started) ?? [];
    const blocks = [
      ['npx portcullis dev', provider],
      ['npx portcullis watch', watched],
    ];
    for (const command of commands) blocks.push([command, await run(command)]);
    return blocks.map(([command, text]) => `\`\`\`text\n$ ${command}\n${show(text).trim()}\n\`\`\`\n`).join('\n');
  } finally {
    dev.kill();
  }
}

/** Collects the output of a process until it matches, or until it ends. */
function readUntil(child, pattern) {
  return new Promise((resolve) => {
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (part) => {
        text += part;
        if (pattern?.test(text)) resolve(text);
      });
    }
    child.once('close', () => resolve(text));
  });
}

/** Replaces what differs from run to run: times, ids, durations. */
function steady(text) {
  return text
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?!, id pX3k)/g, '2026-11-22T10:41:00Z')
    .replace(/\bid (?!pX3k)[\w-]{19}\b/g, 'id W5YBnj-U4wfvFBYM3aa')
    .replace(/\bkid \S+/g, 'kid kKgu…9w')
    .replace(/console-key-\d+/g, 'console-key-9443')
    .replace(/\b\d+ characters/g, '812 characters')
    .replace(/in \d+ ms/g, 'in 41 ms')
    .replace(/within \d+ s/g, 'within 1 s')
    .replace(/\b(?:1 h 59 min|2 h [01] min) ago/g, '2 h 0 min ago')
    .replace(/\b(?:59 min(?: \d+ s)?|1 h [01] min) ago/g, '1 h 0 min ago');
}
