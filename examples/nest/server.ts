import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Access, createResourceServer } from 'portcullis';
import { CurrentAccess, createGuard, Open, Protect } from 'portcullis/nest';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });

@Controller()
class Messages {
  @Get()
  @Open()
  greet() {
    return 'open to everybody';
  }

  @Get('messages')
  @Protect({ scopes: ['read:messages'] })
  list(@CurrentAccess() { claims }: Access) {
    return { reader: claims.sub };
  }
}

@Module({ controllers: [Messages] })
class App {}

const app = await NestFactory.create(App);
app.useGlobalGuards(createGuard(resourceServer));
await app.listen(Number(process.env['PORT'] ?? 3000));
