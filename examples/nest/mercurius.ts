import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Args, GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Access, ResourceServer } from 'portcullis';
import { CurrentAccess, createGuard, Open, Protect } from 'portcullis/nest';

@Resolver()
class Messages {
  @Query(() => String)
  @Open()
  greeting() {
    return 'open to everybody';
  }

  @Query(() => String)
  @Protect({ scopes: ['read:messages'] })
  reader(@CurrentAccess() { claims }: Access) {
    return claims.sub;
  }

  @Mutation(() => String)
  @Protect({ scopes: ['write:messages'] })
  send(@Args('text', { type: () => String }) text: string, @CurrentAccess() { claims }: Access) {
    return `${claims.sub}: ${text}`;
  }
}

@Module({
  imports: [GraphQLModule.forRoot<MercuriusDriverConfig>({ driver: MercuriusDriver, autoSchemaFile: true })],
  providers: [Messages],
})
class App {}

/** GraphQL on Mercurius and Fastify: each query and mutation says who may call it. */
export async function createApp(resourceServer: ResourceServer) {
  const app = await NestFactory.create<NestFastifyApplication>(App, new FastifyAdapter(), { logger: ['error'] });
  return app.useGlobalGuards(createGuard(resourceServer));
}
