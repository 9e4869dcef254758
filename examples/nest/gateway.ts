import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import type { Access, ResourceServer } from 'portcullis';
import { CurrentAccess, PortcullisModule, Scopes } from 'portcullis/nest';

@WebSocketGateway()
class Chat {
  @SubscribeMessage('say')
  @Scopes('chat')
  say(@MessageBody() text: string, @CurrentAccess() { claims }: Access) {
    return { event: 'said', data: `${claims.sub}: ${text}` };
  }

  @SubscribeMessage('ask')
  ask(@CurrentAccess() { claims }: Access) {
    return { event: 'said', data: claims.sub };
  }
}

@Module({ providers: [Chat] })
class App {}

/** A gateway on socket.io: the guard validates each message with the credentials of the upgrade. */
export function createApp(resourceServer: ResourceServer) {
  const module = { module: App, imports: [PortcullisModule.forRoot({ resourceServer })] };
  return NestFactory.create(module, { logger: ['error'] });
}
