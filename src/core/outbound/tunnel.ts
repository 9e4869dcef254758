import type { ClientRequest, RequestOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { ProviderError } from './provider-error.ts';
import { bareHost } from './proxy-choice.ts';

export type Tunnels = Awaited<ReturnType<typeof createTunnels>>;

interface TunnelOptions {
  /** Trust for a proxy over TLS. Default: the roots of Node. */
  readonly secureContext?: SecureContext | undefined;
  /** Limit of opening one, in milliseconds. */
  readonly timeout: number;
}

/** Some proxies send 401 instead. */
const wantsCredentials = /^40[17]$/;

/** Creates the tunnels of one proxy (RFC 9110 §9.3.6), with the credentials of its address. */
export async function createTunnels(address: string, { secureContext, timeout }: TunnelOptions) {
  const proxy = new URL(address);
  const { request } = await (proxy.protocol === 'https:' ? import('node:https') : import('node:http'));
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const authorization = credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
  const opening = new Set<ClientRequest>();
  return {
    /** Opens a connection. Rejects with a `ProviderError` of the kind `proxy` or `proxy_credentials`. */
    open(host: string, port: string | number): Promise<Socket> {
      const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
      const options: RequestOptions & { readonly secureContext?: SecureContext } = {
        ...{ host: bareHost(proxy.hostname), port: proxy.port, method: 'CONNECT', path: authority, agent: false },
        headers: { host: authority, ...(authorization !== undefined && { 'proxy-authorization': authorization }) },
        ...(secureContext && { secureContext }),
      };
      return new Promise((resolve, reject) => {
        const fail = (detail = ''): void =>
          reject(new ProviderError(wantsCredentials.test(detail) ? 'proxy_credentials' : 'proxy', { detail }));
        const sent = request(options);
        opening.add(sent);
        const deadline = setTimeout(() => {
          fail('ETIMEDOUT');
          sent.destroy();
        }, timeout);
        sent.once('connect', ({ statusCode }, socket: Socket) => {
          clearTimeout(deadline);
          if (statusCode === 200) return resolve(socket);
          socket.destroy();
          fail(String(statusCode));
        });
        // The error may contain the address of the proxy, which may hold a password.
        sent.once('error', ({ code }: NodeJS.ErrnoException) => fail(code));
        sent.once('close', () => {
          clearTimeout(deadline);
          opening.delete(sent);
        });
        sent.end();
      });
    },
    /** Ends what is being opened. */
    close(): void {
      for (const sent of opening) sent.destroy();
    },
  };
}
