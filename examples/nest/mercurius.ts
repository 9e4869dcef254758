import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Args, GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Access, ResourceServer } from 'portcullis';
import { CurrentAccess, Open, PortcullisModule, Scopes } from 'portcullis/nest';

@Resolver()
class Messages {
  @Query(() => String)
  @Open()
  greeting() {
    return 'open to all';
  }

  @Query(() => String)
  @Scopes('read:messages')
  reader(@CurrentAccess() { claims }: Access) {
    return claims.sub;
  }

  @Query(() => String)
  scheme(@CurrentAccess() { scheme }: Access) {
    return scheme;
  }

  @Mutation(() => String)
  @Scopes('write:messages')
  send(@Args('text', { type: () => String }) text: string, @CurrentAccess() { claims }: Access) {
    return `${claims.sub}: ${text}`;
  }
}

@Module({
  imports: [GraphQLModule.forRoot<MercuriusDriverConfig>({ driver: MercuriusDriver, autoSchemaFile: true })],
  providers: [Messages],
})
class App {}

/** GraphQL on Mercurius and Fastify: a query without a decorator requires any valid token. */
export function createApp(resourceServer: ResourceServer) {
  const module = { module: App, imports: [PortcullisModule.forRoot({ resourceServer })] };
  return NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), { logger: ['error'] });
}
