import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Args, Context, GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
import { GraphQLError } from 'graphql';
import type { Access, RegisteredClaims, ResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/express';

/** The request of an operation: Express middleware has admitted it. */
interface Admitted {
  readonly access: Access<RegisteredClaims>;
}

@Resolver()
class Messages {
  @Query(() => String)
  reader(@Context('req') { access }: Admitted) {
    return access.claims.sub;
  }

  @Mutation(() => String)
  send(@Args('text', { type: () => String }) text: string, @Context('req') { access }: Admitted) {
    // The requirement of one field.
    if (!access.scopes.has('write:messages')) {
      throw new GraphQLError('The access token does not allow this.', { extensions: { code: 'FORBIDDEN' } });
    }
    return `${access.claims.sub}: ${text}`;
  }
}

@Module({
  imports: [GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true })],
  providers: [Messages],
})
class App {}

/** GraphQL on Apollo: each operation requires a valid token. */
export async function createApp(resourceServer: ResourceServer) {
  const app = await NestFactory.create(App, { logger: ['error'] });
  app.use('/graphql', createAuthorize(resourceServer)());
  return app;
}
