import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../tools/shared/network.js';
import { requireProgram } from './programs.ts';

/** A running HTTP proxy on loopback. */
export interface ForwardProxy {
  /** `http://<user>:<password>@127.0.0.1:<port>`, for HTTPS_PROXY. */
  readonly url: string;
  /** Targets (`host:port`) of the CONNECT requests that came so far, in order. */
  connects(): Promise<readonly string[]>;
  /** Stops the process and removes its files. */
  close(): Promise<void>;
}

/** Targets and users that the proxy accepts. */
export interface ForwardProxyOptions {
  /** The one port that CONNECT may reach. */
  readonly port: number;
  /** Required Basic credentials. */
  readonly credentials: { readonly user: string; readonly password: string };
}

/** Starts tinyproxy on a free loopback port; stop it with `close()`. */
export async function startForwardProxy({ port, credentials }: ForwardProxyOptions): Promise<ForwardProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-proxy-'));
  const configFile = join(folder, 'tinyproxy.conf');
  const logFile = join(folder, 'tinyproxy.log');
  const ownPort = await findFreePort();
  const config = [
    `Port ${ownPort}`,
    'Listen 127.0.0.1',
    'Allow 127.0.0.1',
    'Timeout 30',
    `ConnectPort ${port}`,
    `LogFile "${logFile}"`,
    'LogLevel Connect',
    `BasicAuth ${credentials.user} ${credentials.password}`,
  ];
  await writeFile(configFile, `${config.join('\n')}\n`);
  const child = spawn(requireProgram('tinyproxy'), ['-d', '-c', configFile], { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await waitForPort(ownPort);
  return {
    url: `http://${credentials.user}:${credentials.password}@127.0.0.1:${ownPort}`,
    async connects() {
      const log = await readFile(logFile, 'utf8');
      return [...log.matchAll(/Request \(file descriptor \d+\): CONNECT (\S+) HTTP/g)].map(([, target = '']) => target);
    },
    async close() {
      child.kill();
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function waitForPort(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    if (await accepts(port)) return;
    await sleep(50);
  }
  throw new Error('The proxy did not start.');
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
