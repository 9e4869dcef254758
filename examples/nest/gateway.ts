import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import type { Access, ResourceServer } from 'portcullis';
import { CurrentAccess, createGuard, Protect } from 'portcullis/nest';

@WebSocketGateway()
class Chat {
  @SubscribeMessage('say')
  @Protect({ scopes: ['chat'] })
  say(@MessageBody() text: string, @CurrentAccess() { claims }: Access) {
    return { event: 'said', data: `${claims.sub}: ${text}` };
  }
}

@Module({ providers: [Chat] })
class App {}

/** A gateway on socket.io: each message is judged by the credentials of the upgrade. */
export async function createApp(resourceServer: ResourceServer) {
  const app = await NestFactory.create(App, { logger: ['error'] });
  return app.useGlobalGuards(createGuard(resourceServer));
}
