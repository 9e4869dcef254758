import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Args, GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
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
  imports: [GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true })],
  providers: [Messages],
})
class App {}

/** GraphQL on Apollo: each query and mutation says who may call it. */
export async function createApp(resourceServer: ResourceServer) {
  const app = await NestFactory.create(App, { logger: ['error'] });
  return app.useGlobalGuards(createGuard(resourceServer));
}
