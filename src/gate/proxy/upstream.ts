import { Agent as HttpAgent, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Pool } from 'undici';
import { parseUpstream } from '../../http/upstream-address.ts';

/** What is needed to reach the upstream. */
export interface UpstreamOptions {
  readonly upstream: string;
  /** Seconds. */
  readonly timeout: number;
  readonly ca?: string;
}

/** An upstream, and two ways to it. */
export interface Upstream {
  readonly isTls: boolean;
  /** For requests without a body: the fastest client. */
  readonly pool: Pool;
  /** For what the pool cannot do: trailers of requests, `Expect: 100-continue`, upgrades that are refused. */
  readonly requestOptions: RequestOptions;
  /** The name in the certificate of the upstream; not the Host that the client sent. */
  readonly servername: string | null;
  readonly timeoutMilliseconds: number;
  close(): void;
}

/** Milliseconds that a connection without a hint of the upstream is kept: most servers keep them for 5 s or longer. */
const idleMilliseconds = 4000;
const maxIdleMilliseconds = 60_000;
/** Bytes of the headers of an answer. */
export const maxAnswerHeaderBytes = 64 * 1024;

/** Loads the client and makes the pools; no connection is opened. */
export async function openUpstream({ upstream, timeout, ca }: UpstreamOptions): Promise<Upstream> {
  const address = parseUpstream(upstream);
  if (!(timeout > 0) || timeout > 3600) throw new TypeError('timeout must be over 0 and at most 3600 seconds.');
  const { isTls, hostname, port, socketPath } = address;
  const timeoutMilliseconds = timeout * 1000;
  const servername = isTls ? hostname.replace(/^\[|\]$/g, '') : null;
  const tls = isTls && ca !== undefined ? { ca } : {};
  const { Pool: PoolClass } = await import('undici');
  const pool = new PoolClass(`${isTls ? 'https' : 'http'}://${hostname}:${port}`, {
    pipelining: 1,
    headersTimeout: timeoutMilliseconds,
    bodyTimeout: timeoutMilliseconds,
    keepAliveTimeout: idleMilliseconds,
    keepAliveMaxTimeout: maxIdleMilliseconds,
    maxHeaderSize: maxAnswerHeaderBytes,
    connect: { timeout: timeoutMilliseconds, ...tls },
    ...(socketPath !== undefined && { socketPath }),
  });
  const agentOptions = { keepAlive: true, timeout: idleMilliseconds, scheduling: 'lifo' } as const;
  const agent = isTls ? new HttpsAgent({ ...agentOptions, ...tls }) : new HttpAgent(agentOptions);
  const place = socketPath === undefined ? { host: hostname.replace(/^\[|\]$/g, ''), port } : { socketPath };
  return {
    isTls,
    pool,
    requestOptions: {
      ...place,
      agent,
      maxHeaderSize: maxAnswerHeaderBytes,
      ...(servername !== null && { servername }),
    },
    servername,
    timeoutMilliseconds,
    close() {
      agent.destroy();
      void pool.destroy();
    },
  };
}
