import { Agent } from 'node:http';
import { parseUpstream } from '../../http/upstream-address.ts';
import { createPool, type Pool } from './pool.ts';
import { createOpenConnection, type OpenConnection } from './upstream-connection.ts';

/** What is needed to reach the upstream. */
export interface UpstreamOptions {
  readonly upstream: string;
  /** Seconds. */
  readonly timeout: number;
  /** Seconds. */
  readonly uploadTimeout: number;
  /** `off`: one connection for each request. */
  readonly keepAlive: 'on' | 'off';
  readonly ca?: string;
}

/** An upstream, and two ways to it. */
export interface Upstream {
  readonly keepAlive: 'on' | 'off';
  readonly open: OpenConnection;
  /** For requests without a body: the fastest client. */
  readonly pool: Pool;
  /** For what the pool cannot do: bodies with trailers, and `Expect: 100-continue`. */
  readonly agent: Agent;
  readonly timeoutMilliseconds: number;
  readonly uploadMilliseconds: number;
  close(): void;
}

/** Milliseconds that a connection without a hint of the upstream is kept: most servers keep them for 5 s or longer. */
const idleMilliseconds = 4000;
const maxIdleMilliseconds = 60_000;
/** Bytes of the headers of an answer. */
export const maxAnswerHeaderBytes = 64 * 1024;

/** Loads the client and makes the pools; no connection is opened. */
export async function openUpstream(options: UpstreamOptions): Promise<Upstream> {
  const { upstream, timeout, uploadTimeout, keepAlive, ca } = options;
  const address = parseUpstream(upstream);
  if (!(timeout > 0) || timeout > 3600) throw new TypeError('timeout must be over 0 and at most 3600 seconds.');
  const timeoutMilliseconds = timeout * 1000;
  const open = createOpenConnection(address, ca);
  const pool = await createPool({
    open,
    isTls: address.isTls,
    pipelining: keepAlive === 'on' ? 1 : 0,
    connectTimeout: timeoutMilliseconds,
    headersTimeout: timeoutMilliseconds,
    bodyTimeout: timeoutMilliseconds,
    keepAliveTimeout: idleMilliseconds,
    keepAliveMaxTimeout: maxIdleMilliseconds,
    maxHeaderSize: maxAnswerHeaderBytes,
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
    close() {
      agent.destroy();
      pool.close();
    },
  };
}
