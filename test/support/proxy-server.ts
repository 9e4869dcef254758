import { existsSync } from 'node:fs';
import { chmod, open, readFile, rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolder } from '../../tools/shared/folder.js';
import { findFreePort, isOpen, until } from '../../tools/shared/network.js';
import { endChild, startChild } from '../../tools/shared/processes.js';
import { type ProgramName, requireProgram } from './programs.ts';
import type { TestCertificates } from './tls.ts';

/** The proxies that deploy/proxies has a file for. */
export const proxyNames = ['nginx', 'haproxy', 'apache', 'caddy'] as const;

export type ProxyName = (typeof proxyNames)[number];

/** Options of the edge. */
export interface ProxyServerOptions {
  /** `host:port` of both instances. */
  readonly upstreams: readonly [string, string];
  /** Path under which they are mounted. */
  readonly prefix: string;
  /** For localhost. */
  readonly certificates: TestCertificates;
}

/** A real reverse proxy in its own process, configured by its file under deploy/proxies. */
export type ProxyServer = Awaited<ReturnType<typeof tryEdge>>;

/** The command of one proxy. */
export interface Edge {
  readonly program: ProgramName;
  /** Its own file first, then those that it loads. */
  readonly templates: readonly URL[];
  readonly args: (file: string, folder: string) => readonly string[];
}

function template(name: string): URL {
  return new URL(`../../deploy/proxies/${name}`, import.meta.url);
}

/** Commands of the proxies with their files under deploy/proxies. */
export const edges: Readonly<Record<ProxyName, Edge>> = {
  nginx: {
    program: 'nginx',
    templates: [template('nginx.conf')],
    args: (file, folder) => ['-e', join(folder, 'error.log'), '-c', file, '-g', 'daemon off;'],
  },
  haproxy: { program: 'haproxy', templates: [template('haproxy.cfg')], args: (file) => ['-db', '-f', file] },
  apache: { program: 'apache2', templates: [template('apache.conf')], args: (file) => ['-DFOREGROUND', '-f', file] },
  caddy: {
    program: 'caddy',
    templates: [template('Caddyfile')],
    args: (file) => ['run', '--config', file, '--adapter', 'caddyfile'],
  },
};

const moduleFolders = ['/usr/lib/apache2/modules', '/usr/lib64/httpd/modules', '/usr/lib/httpd/modules'];
const attempts = 3;

/** The program that a proxy's tests need. */
export function programOf(name: ProxyName): ProgramName {
  return edges[name].program;
}

/** Starts a proxy and waits until it accepts connections. Rejects with what it logged where it ends before. */
export async function startProxy(name: ProxyName, options: ProxyServerOptions): Promise<ProxyServer> {
  const { upstreams, prefix, certificates } = options;
  return startEdge(edges[name], {
    certificates,
    values: { PREFIX: prefix, UPSTREAM_1: upstreams[0], UPSTREAM_2: upstreams[1] },
  });
}

/** Values of the placeholders in the files of an edge. */
export interface EdgeOptions {
  /** For localhost. */
  readonly certificates: TestCertificates;
  /** Placeholders in addition to the common ones. */
  readonly values: Readonly<Record<string, string>>;
}

/** Starts a proxy by its files and waits until it accepts connections. Rejects with what it logged if it ends before. */
export async function startEdge(edge: Edge, options: EdgeOptions): Promise<ProxyServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryEdge(edge, options);
    } catch (error) {
      // No proxy can choose a free port itself, so another process may use the port first.
      if (attempt === attempts) throw error;
    }
  }
}

async function tryEdge(edge: Edge, options: EdgeOptions) {
  const { program: name, args } = edge;
  const program = requireProgram(name);
  const port = await findFreePort();
  const folder = makeFolder(name);
  // Workers that gave up root write into folders of their own below it.
  await chmod(folder, 0o755);
  const file = await writeFiles(edge, { ...options, port, folder });
  const output = await open(join(folder, 'output.log'), 'w');
  const running = startChild([program, ...args(file, folder)], {
    env: { PATH: process.env['PATH'], HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
    stdio: ['ignore', output.fd, output.fd],
  });
  await output.close();
  const listens = until(() => isOpen(port), 'It does not listen.');
  await running.orEnd(listens, name).catch(async (cause: unknown) => {
    await endChild(running);
    const logs = ['output.log', 'error.log'].map((log) => readFile(join(folder, log), 'utf8').catch(() => ''));
    const text = (await Promise.all(logs)).join('');
    await rm(folder, { recursive: true });
    throw new Error(`${name} did not start.\n${text}`, { cause });
  });
  return {
    /** It listens on 127.0.0.1 alone. */
    origin: `https://localhost:${port}`,
    port,
    /** Ends it and removes its files. */
    async stop() {
      await endChild(running);
      await rm(folder, { recursive: true });
    },
  };
}

interface Files extends EdgeOptions {
  readonly port: number;
  readonly folder: string;
}

/** Writes the certificate and the filled-in configuration; the path of the latter. */
async function writeFiles({ templates }: Edge, { values: own, certificates, port, folder }: Files): Promise<string> {
  const certificate = join(folder, 'server.pem');
  const key = `${certificate}.key`;
  const { uid, gid } = userInfo();
  // Apache refuses to serve as root.
  const [user, group] = uid === 0 ? [65_534, 65_534] : [uid, gid];
  const values: Readonly<Record<string, string | undefined>> = {
    HOST: 'localhost',
    PORT: String(port),
    ADDRESS: '127.0.0.1',
    CERTIFICATE: certificate,
    KEY: key,
    FOLDER: folder,
    MODULES: moduleFolders.find((folder) => existsSync(folder)),
    USER: `#${user}`,
    GROUP: `#${group}`,
    ...own,
  };
  await writeFile(certificate, certificates.cert);
  await writeFile(key, certificates.key, { mode: 0o600 });
  const files = templates.map((url) => join(folder, basename(fileURLToPath(url))));
  for (const [index, file] of files.entries()) {
    const text = await readFile(fileURLToPath(templates[index] ?? ''), 'utf8');
    await writeFile(
      file,
      text.replace(/@([A-Z_\d]+)@/g, (placeholder, key: string) => values[key] ?? placeholder),
    );
  }
  return files[0] ?? '';
}
