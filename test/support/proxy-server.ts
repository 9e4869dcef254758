import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ProgramName, requireProgram } from './programs.ts';
import { findFreePort } from './redis.ts';
import { superviseChild } from './service-process.ts';
import type { TestCertificates } from './tls.ts';

/** The proxies that deploy/proxies has a file for. */
export const proxyNames = ['nginx', 'haproxy', 'apache', 'caddy'] as const;

export type ProxyName = (typeof proxyNames)[number];

/** What the edge is put together from. */
export interface ProxyServerOptions {
  /** `host:port` of both instances. */
  readonly upstreams: readonly [string, string];
  /** Path under which they are mounted. */
  readonly prefix: string;
  /** For localhost. */
  readonly certificates: TestCertificates;
}

/** A real reverse proxy in a process of its own, set up by its file under deploy/proxies. */
export interface ProxyServer {
  /** `https://localhost:<port>`; it listens on 127.0.0.1 alone. */
  readonly origin: string;
  readonly port: number;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

interface Edge {
  readonly program: ProgramName;
  readonly template: string;
  readonly args: (file: string, folder: string) => readonly string[];
}

const edges: Readonly<Record<ProxyName, Edge>> = {
  nginx: {
    program: 'nginx',
    template: 'nginx.conf',
    args: (file, folder) => ['-e', join(folder, 'error.log'), '-c', file, '-g', 'daemon off;'],
  },
  haproxy: { program: 'haproxy', template: 'haproxy.cfg', args: (file) => ['-db', '-f', file] },
  apache: { program: 'apache2', template: 'apache.conf', args: (file) => ['-DFOREGROUND', '-f', file] },
  caddy: {
    program: 'caddy',
    template: 'Caddyfile',
    args: (file) => ['run', '--config', file, '--adapter', 'caddyfile'],
  },
};

const templates = new URL('../../deploy/proxies/', import.meta.url);
const moduleFolders = ['/usr/lib/apache2/modules', '/usr/lib64/httpd/modules', '/usr/lib/httpd/modules'];
const attempts = 3;
const pollInterval = 20;

/** The program that a proxy's tests need. */
export function programOf(name: ProxyName): ProgramName {
  return edges[name].program;
}

/** Starts a proxy and waits until it accepts connections. Rejects with what it logged where it ends before. */
export async function startProxy(name: ProxyName, options: ProxyServerOptions): Promise<ProxyServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryProxy(name, options);
    } catch (error) {
      // None of them can be told to pick a free port, so another process may have been faster.
      if (attempt === attempts) throw error;
    }
  }
}

async function tryProxy(name: ProxyName, options: ProxyServerOptions): Promise<ProxyServer> {
  const program = requireProgram(edges[name].program);
  const port = await findFreePort();
  const folder = await mkdtemp(join(tmpdir(), `portcullis-${name}-`));
  // Workers that gave up root write into folders of their own below it.
  await chmod(folder, 0o755);
  const file = await writeFiles(name, { ...options, port, folder });
  const output = await open(join(folder, 'output.log'), 'w');
  const child = spawn(program, edges[name].args(file, folder), {
    env: { PATH: process.env['PATH'], HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
    stdio: ['ignore', output.fd, output.fd],
  });
  const ended = superviseChild(child);
  await output.close();
  if (!(await Promise.race([waitForListener(port, ended), ended.then(() => false)]))) {
    const logs = ['output.log', 'error.log'].map((log) => readFile(join(folder, log), 'utf8').catch(() => ''));
    const text = (await Promise.all(logs)).join('');
    await rm(folder, { recursive: true });
    throw new Error(`${name} did not start.\n${text}`);
  }
  return {
    origin: `https://localhost:${port}`,
    port,
    async stop() {
      child.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}

function findModules(): string | undefined {
  return moduleFolders.find((folder) => existsSync(folder));
}

interface Files extends ProxyServerOptions {
  readonly port: number;
  readonly folder: string;
}

/** Writes the certificate and the filled-in configuration; the path of the latter. */
async function writeFiles(name: ProxyName, { upstreams, prefix, certificates, port, folder }: Files): Promise<string> {
  const certificate = join(folder, 'server.pem');
  const key = `${certificate}.key`;
  const { uid, gid } = userInfo();
  // Apache refuses to serve as root.
  const [user, group] = uid === 0 ? [65_534, 65_534] : [uid, gid];
  const values: Readonly<Record<string, string | undefined>> = {
    HOST: 'localhost',
    PORT: String(port),
    ADDRESS: '127.0.0.1',
    PREFIX: prefix,
    CERTIFICATE: certificate,
    KEY: key,
    UPSTREAM_1: upstreams[0],
    UPSTREAM_2: upstreams[1],
    FOLDER: folder,
    MODULES: findModules(),
    USER: `#${user}`,
    GROUP: `#${group}`,
  };
  const { template } = edges[name];
  const text = await readFile(fileURLToPath(new URL(template, templates)), 'utf8');
  const file = join(folder, template);
  await writeFile(certificate, certificates.cert);
  await writeFile(key, certificates.key, { mode: 0o600 });
  await writeFile(
    file,
    text.replace(/@([A-Z_\d]+)@/g, (placeholder, key: string) => values[key] ?? placeholder),
  );
  return file;
}

/** Resolves with true once something accepts connections on the port; with false once the process has ended. */
async function waitForListener(port: number, ended: Promise<unknown>): Promise<boolean> {
  let alive = true;
  void ended.then(() => {
    alive = false;
  });
  while (alive) {
    if (await canConnect(port)) return true;
    await new Promise((resolve) => setTimeout(resolve, pollInterval));
  }
  return false;
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
