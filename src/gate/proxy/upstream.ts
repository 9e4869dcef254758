import { Agent } from 'node:http';
import { parseUpstream } from '../../http/upstream-address.ts';
import { createPool, type Pool } from './pool.ts';
import { createOpenConnection, type OpenConnection } from './upstream-connection.ts';

export interface UpstreamOptions {
  readonly upstream: string;
  /** Seconds. */
  readonly timeout: number;
  /** Seconds. */
  readonly uploadTimeout: number;
  readonly keepAlive: 'on' | 'off';
  readonly ca?: string;
  readonly onReachable?: ((isReachable: boolean) => void) | undefined;
}

export interface Upstream {
  readonly keepAlive: 'on' | 'off';
  readonly open: OpenConnection;
  /** Client for requests without a body, the fastest. */
  readonly pool: Pool;
  /** Client for bodies with trailers and `Expect: 100-continue`, which the pool does not support. */
  readonly agent: Agent;
  readonly timeoutMilliseconds: number;
  readonly uploadMilliseconds: number;
  probe(): void;
  isReachable(): boolean;
  close(): void;
}

/** Milliseconds that an idle connection is kept without a hint of the upstream; most servers keep it for 5 s or longer. */
const idleMilliseconds = 4000;
const maxIdleMilliseconds = 60_000;
/** Maximum size of response headers, in bytes. */
export const maxResponseHeaderBytes = 64 * 1024;

/** Loads the client and creates the pools; opens no connection. */
export async function openUpstream(options: UpstreamOptions): Promise<Upstream> {
  const { upstream, timeout, uploadTimeout, keepAlive, ca } = options;
  const address = parseUpstream(upstream);
  if (!(timeout > 0) || timeout > 3600) throw new TypeError('timeout must be over 0 and at most 3600 seconds.');
  const timeoutMilliseconds = timeout * 1000;
  const connect = createOpenConnection(address, ca);
  let isReachable = true;
  const note = (next: boolean): void => {
    if (next !== isReachable) options.onReachable?.(next);
    isReachable = next;
  };
  const connected = address.isTls ? 'secureConnect' : 'connect';
  const open: OpenConnection = () => {
    const socket = connect();
    const fail = (): void => note(false);
    socket.once('error', fail).once(connected, () => {
      socket.off('error', fail);
      note(true);
    });
    return socket;
  };
  const pool = await createPool({
    open,
    isTls: address.isTls,
    pipelining: keepAlive === 'on' ? 1 : 0,
    connectTimeout: timeoutMilliseconds,
    headersTimeout: timeoutMilliseconds,
    bodyTimeout: timeoutMilliseconds,
    keepAliveTimeout: idleMilliseconds,
    keepAliveMaxTimeout: maxIdleMilliseconds,
    maxHeaderSize: maxResponseHeaderBytes,
  });
  const agent = new Agent({ keepAlive: keepAlive === 'on', timeout: idleMilliseconds, scheduling: 'lifo' });
  agent.createConnection = open;
  return {
    keepAlive,
    open,
    pool,
    agent,
    timeoutMilliseconds,
    uploadMilliseconds: uploadTimeout * 1000,
    probe() {
      const socket = open().on('error', () => {});
      socket.setTimeout(timeoutMilliseconds, () =>
        socket.destroy(new Error('The upstream has not accepted the connection.')),
      );
      socket.once(connected, () => socket.destroy());
    },
    isReachable: () => isReachable,
    close() {
      agent.destroy();
      pool.close();
    },
  };
}
