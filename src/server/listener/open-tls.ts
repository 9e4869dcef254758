import { readFileSync } from 'node:fs';
import type { Server as HttpServer, ServerOptions } from 'node:http';
import type { Server, TlsOptions } from 'node:tls';
import { onBun, onDeno } from '../../platform.ts';
import { exitCodes, StartFailure } from '../lifecycle/exit.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import type { Log } from '../observation/log.ts';
import type { Settings } from '../settings/settings.ts';

/** Creates the server that accepts TLS connections; on Bun and Deno it also speaks HTTP. */
export type CreateTlsServer = (options: ServerOptions) => HttpServer & Server;

/** What TLS is opened with. */
export interface OpenTlsOptions {
  readonly settings: Pick<Settings, 'tlsCert' | 'tlsKey' | 'tlsClientCa'>;
  readonly reloads: Reloads;
  readonly log: Log;
}

/** Seconds for the handshake of TLS; as long as for the headers of a request. */
const handshakeSeconds = 10;

/**
 * Reads the files of `TLS_CERT`, `TLS_KEY` and `TLS_CLIENT_CA`; `undefined` if there are none. A reload reads them again:
 * connections that are open keep what they began with. Rejects with `StartFailure` if they cannot be used.
 */
export async function openTls({ settings, reloads, log }: OpenTlsOptions): Promise<CreateTlsServer | undefined> {
  const { tlsCert, tlsKey, tlsClientCa } = settings;
  if (tlsCert === '') return undefined;
  // Loading it costs time at the start, and most have a proxy that ends TLS.
  const { createSecureContext, createServer: createAcceptor } = await import('node:tls');
  const createServer = (onBun || onDeno ? (await import('node:https')).createServer : createAcceptor) as (
    options: ServerOptions & TlsOptions,
  ) => HttpServer & Server; // of both, what the runtime uses
  const read = () => {
    const material = {
      cert: readFileSync(tlsCert),
      key: readFileSync(tlsKey),
      ...(tlsClientCa !== '' && { ca: readFileSync(tlsClientCa) }),
    };
    createSecureContext(material); // throws if they do not belong together
    return material;
  };
  let material: ReturnType<typeof read>;
  try {
    material = read();
  } catch (cause) {
    throw new StartFailure(`TLS_CERT, TLS_KEY or TLS_CLIENT_CA cannot be used. ${describe(cause)}`, exitCodes.config, {
      cause,
    });
  }
  const clients = tlsClientCa === '' ? {} : { requestCert: true, rejectUnauthorized: true };
  return (options) => {
    const server = createServer({
      ...{ ...options, ...material, ...clients },
      handshakeTimeout: handshakeSeconds * 1000,
      ALPNProtocols: ['http/1.1'],
      allowHalfOpen: true,
    });
    reloads.add(() => {
      try {
        server.setSecureContext(read());
        log.write('info', 'tls_reloaded');
      } catch (error) {
        log.write('error', 'tls_kept', { problem: describe(error) });
      }
    });
    return server;
  };
}

/** Nothing of the files: one holds a private key. */
function describe(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  return `Name files in PEM, a certificate with its chain and the key that belongs to it (${code})`;
}
