import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../tools/shared/folder.js';
import { findFreePort, isOpen, until } from '../../tools/shared/network.js';
import { endChild, startChild } from '../../tools/shared/processes.js';
import { requireProgram } from './programs.ts';

/** Targets and users that the proxy accepts. */
interface ForwardProxyOptions {
  /** The one port that CONNECT may reach. */
  readonly port: number;
  /** Required Basic credentials. */
  readonly credentials: { readonly user: string; readonly password: string };
}

/** Starts tinyproxy on a free loopback port; stop it with `close()`. */
export async function startForwardProxy({ port, credentials }: ForwardProxyOptions) {
  const folder = makeFolder('proxy');
  const configFile = join(folder, 'tinyproxy.conf');
  const logFile = join(folder, 'tinyproxy.log');
  const ownPort = await findFreePort();
  const config = `Port ${ownPort}
Listen 127.0.0.1
Allow 127.0.0.1
Timeout 30
ConnectPort ${port}
LogFile "${logFile}"
LogLevel Connect
BasicAuth ${credentials.user} ${credentials.password}
`;
  writeFileSync(configFile, config);
  const running = startChild([requireProgram('tinyproxy'), '-d', '-c', configFile], { stdio: 'ignore' });
  await until(() => isOpen(ownPort), 'The proxy did not start.');
  return {
    /** For HTTPS_PROXY. */
    url: `http://${credentials.user}:${credentials.password}@127.0.0.1:${ownPort}`,
    /** Targets (`host:port`) of the CONNECT requests that came so far, in order. */
    connects: (): readonly string[] =>
      [...readFileSync(logFile, 'utf8').matchAll(/Request \(file descriptor \d+\): CONNECT (\S+) HTTP/g)].map(
        ([, target = '']) => target,
      ),
    /** Stops the process and removes its files. */
    async close() {
      await endChild(running);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
