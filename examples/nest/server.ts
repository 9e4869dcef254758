import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Access, createResourceServer } from 'portcullis';
import { CurrentAccess, Open, PortcullisModule, Scopes } from 'portcullis/nest';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });

@Controller()
class Messages {
  @Get()
  @Open()
  greet() {
    return 'open to all';
  }

  @Get('messages')
  @Scopes('read:messages')
  list(@CurrentAccess() { claims }: Access) {
    return { reader: claims.sub };
  }
}

@Module({ imports: [PortcullisModule.forRoot({ resourceServer })], controllers: [Messages] })
class App {}

const app = await NestFactory.create(App);
await app.listen(Number(process.env['PORT'] ?? 3000));
