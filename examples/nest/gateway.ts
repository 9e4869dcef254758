import { Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ConnectedSocket, MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { type Access, endAtExpiry, type ResourceServer } from 'portcullis';
import { toResourceRequest } from 'portcullis/node';

const resourceServerKey = Symbol('resource server');

/** The members of a socket of socket.io that are used. */
interface Socket {
  readonly request: Parameters<typeof toResourceRequest>[0];
  readonly data: { access?: Access };
  disconnect(close: boolean): unknown;
  once(event: string, listener: () => void): unknown;
}

interface Sockets {
  use(middleware: (socket: Socket, next: (error?: Error) => void) => void): unknown;
}

@WebSocketGateway()
class Chat {
  @Inject(resourceServerKey)
  readonly resourceServer!: ResourceServer;

  /** Authorizes the handshake, and ends the connection with its token. */
  afterInit(sockets: Sockets) {
    sockets.use((socket, next) => {
      const { request } = socket;
      this.resourceServer.authorize(toResourceRequest(request), { scopes: ['chat'] }, request.socket).then(
        (access) => {
          socket.data.access = access;
          socket.once(
            'disconnect',
            endAtExpiry(access, () => socket.disconnect(true)),
          );
          next();
        },
        () => next(new Error('refused')),
      );
    });
  }

  @SubscribeMessage('say')
  say(@MessageBody() text: string, @ConnectedSocket() { data }: Socket) {
    return { event: 'said', data: `${data.access?.claims.sub}: ${text}` };
  }
}

/** A gateway on socket.io: a handshake requires the scope `chat`. */
export function createApp(resourceServer: ResourceServer) {
  @Module({ providers: [Chat, { provide: resourceServerKey, useValue: resourceServer }] })
  class App {}
  return NestFactory.create(App, { logger: ['error'] });
}
