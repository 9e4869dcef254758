import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { TestCertificates } from './tls.ts';

/** Bytes for a request, whose head is given. */
export type Respond = (head: string) => Buffer | string | undefined;

export interface RawProviderOptions {
  /** `undefined`: plain TCP. */
  readonly certificate: Pick<TestCertificates, 'cert' | 'key'> | undefined;
  /** `end`: closes after the response. `lose`: closes at the second request of a connection. Default: `keep`. */
  readonly after?: 'keep' | 'end' | 'lose';
  readonly host?: string;
}

/** Opens servers of bytes, on loopback. */
export function openRawServers() {
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  /** Listens on a free port. */
  const listen = async (server: Server, host = '127.0.0.1'): Promise<number> => {
    servers.push(server);
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    });
    await once(server.listen(0, host), 'listening');
    return (server.address() as AddressInfo).port; // a TCP server
  };
  return {
    listen,
    /** A provider over TLS that sends these bytes for each request, and then does this; `undefined`: none. */
    startProvider(respond: Respond, { certificate, after = 'keep', host }: RawProviderOptions) {
      const serve = (socket: Socket): void => {
        let answered = 0;
        socket.on('error', () => socket.destroy());
        socket.on('data', (bytes) => {
          if (after === 'lose' && answered++ > 0) return void socket.destroy();
          const response = respond(bytes.toString());
          if (response !== undefined) socket.write(response);
          if (after === 'end') socket.end();
        });
      };
      return listen(certificate === undefined ? createServer(serve) : createTlsServer(certificate, serve), host);
    },
    /** A proxy that responds to CONNECT with this status, and passes bytes on with 200. */
    startProxy: (statusOf = (_port: number) => 200) =>
      listen(
        createServer((client) => {
          client.once('data', (head) => {
            const [, host = '', port] = /^CONNECT ([^ ]+):(\d+) HTTP\/1\.1\r\n/.exec(head.toString()) ?? [];
            const refuse = (status: number): void =>
              void client.end(`HTTP/1.1 ${status} x\r\ncontent-length: 2\r\n\r\nno`);
            const status = statusOf(Number(port));
            if (status !== 200) return refuse(status);
            let isOpen = false;
            const target = connect(Number(port), host === 'localhost' ? '127.0.0.1' : host, () => {
              isOpen = true;
              client.write('HTTP/1.1 200 Connection established\r\n\r\n');
              client.pipe(target).pipe(client);
            });
            client.on('close', () => target.destroy());
            target.on('error', () => (isOpen ? client.destroy() : refuse(502)));
          });
        }),
      ),
    close() {
      for (const socket of sockets) socket.destroy();
      for (const server of servers) server.close();
    },
  };
}

/** A complete response with this content. */
export function respondWith(content: Buffer | string, ...headers: readonly string[]): Buffer {
  const body = Buffer.from(content);
  const head = ['HTTP/1.1 200 OK', ...headers, `content-length: ${body.length}`, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), body]);
}
