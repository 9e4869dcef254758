// The modules that execute for one request: recorded in a process of build/, for a new token on an open connection.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { openScene } from '../../bench/scene.js';

const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const main = file('../../../build/cli/main.js');
/** Requests that are recorded: what only some of them execute, such as a timer, is not on the path. */
const requests = 20;

/** The paths of CONTRIBUTING.md. `most`: modules that each may have. */
export const paths = {
  library: { title: 'A Bearer request of the library, from `authorize` to `Access`', most: 16 },
  service: { title: 'A GET of the service', most: 27 },
  forwardAuth: { title: 'A request to `/forward-auth` of the gate', most: 31 },
  proxied: { title: 'A request through the gate as the proxy', most: 37 },
};

/**
 * The next message of this type.
 *
 * @param {import('node:child_process').ChildProcess} child
 * @param {string} type
 * @returns {Promise<any>}
 */
function receive(child, type) {
  return new Promise((resolve, reject) => {
    const settle = (/** @type {any} */ message) => {
      const isMessage = typeof message === 'object' && message !== null;
      if (isMessage && message.type !== type) return;
      child.off('message', settle).off('exit', settle);
      if (isMessage) resolve(message);
      else reject(new Error(`the recorded process ended with ${message}`));
    };
    child.on('message', settle).on('exit', settle);
  });
}

async function record({ words, environment }, send) {
  const child = fork(file('recorded.js'), words, {
    env: { PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: 'off', ...environment },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const take = async () => {
    const taken = receive(child, 'executed');
    child.send('take');
    return new Set((await taken).files);
  };
  try {
    const { url } = await receive(child, 'listening');
    await send({ child, url, agent });
    const recorded = [];
    for (let count = 0; count < requests; count++) {
      await take();
      await send({ child, url, agent });
      recorded.push(await take());
    }
    const [first, ...others] = recorded;
    return [...first].filter((name) => others.every((each) => each.has(name))).toSorted();
  } finally {
    agent.destroy();
    child.kill('SIGKILL');
  }
}

async function get({ url, agent }, path, headers) {
  const sent = request(new URL(path, url), { agent, headers }).end();
  const [response] = await once(sent, 'response');
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`${path}: status ${response.statusCode}`);
}

/** Records every path: its modules below build/, as names of sources. */
export async function recordPaths() {
  const scene = await openScene();
  const upstream = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (upstream.address());
  const { issuer, audience, domain, certificateFile: NODE_EXTRA_CA_CERTS } = scene;
  const rules = scene.write(
    'rules.json',
    JSON.stringify({
      issuers: { main: { issuer, audience } },
      rules: [{ id: 'messages', path: '/messages', scopes: ['read:messages'] }],
    }),
  );
  let minted = 0;
  const mint = () => scene.mintOne({ jti: `recorded-${minted++}` });
  const authorization = () => ({ authorization: `Bearer ${mint()}` });
  const settings = { NODE_EXTRA_CA_CERTS, IDP_DOMAIN: domain, IDP_AUDIENCE: audience, WORKERS: '1' };
  try {
    const recorded = {
      library: await record(
        {
          words: [file('recorded-library.js')],
          environment: { NODE_EXTRA_CA_CERTS, ISSUER: issuer, AUDIENCE: audience },
        },
        async ({ child }) => {
          const authorized = receive(child, 'authorized');
          child.send({ token: mint() });
          await authorized;
        },
      ),
      service: await record({ words: [main, 'serve'], environment: settings }, (to) =>
        get(to, '/api/private-scoped', authorization()),
      ),
      forwardAuth: await record({ words: [main, 'gate', '--rules', rules], environment: settings }, (to) =>
        get(to, '/forward-auth', {
          'X-Forwarded-Method': 'GET',
          'X-Forwarded-Proto': 'https',
          'X-Forwarded-Host': 'api.example',
          'X-Forwarded-Uri': '/messages',
          ...authorization(),
        }),
      ),
      proxied: await record(
        { words: [main, 'gate', '--rules', rules, '--upstream', `http://127.0.0.1:${port}`], environment: settings },
        (to) => get(to, '/messages', authorization()),
      ),
    };
    return Object.fromEntries(
      Object.entries(recorded).map(([name, files]) => [name, files.map((each) => each.replace(/\.js$/, '.ts'))]),
    );
  } finally {
    upstream.close();
    await scene.close();
  }
}

/** The part of CONTRIBUTING.md that has the lists. */
export const pathsPlace = /<!-- paths -->\n([\s\S]*?)<!-- end -->/;

/** The lists of CONTRIBUTING.md. */
export function formatPaths(recorded) {
  return Object.entries(paths)
    .map(([name, { title, most }]) => {
      const files = recorded[name];
      return `**${title}: ${files.length} files** (at most ${most})\n\n${formatFolders(files)}\n`;
    })
    .join('\n');
}

function formatFolders(files) {
  const folderOf = (name) => name.slice(0, Math.max(0, name.lastIndexOf('/')));
  const folders = new Map();
  for (const each of files) folders.set(folderOf(each), [...(folders.get(folderOf(each)) ?? []), each]);
  return [...folders]
    .map(([folder, members]) => {
      const names = members.map((each) => `\`${each.slice(each.lastIndexOf('/') + 1)}\``).join(', ');
      return `- ${folder === '' ? 'at the top' : `\`${folder}/\``}: ${names}`;
    })
    .join('\n');
}
