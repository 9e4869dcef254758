import { createServer, type Server } from 'node:http';
import { createGraphQLError, createSchema, createYoga } from 'graphql-yoga';
import type { Access, ResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/node';

interface Context {
  readonly access: Access;
}

const schema = createSchema<Context>({
  typeDefs: 'type Query { reader: String! } type Mutation { send(text: String!): String! }',
  resolvers: {
    Query: { reader: (_parent, _args, { access }) => access.claims.sub },
    Mutation: {
      send(_parent, { text }: { readonly text: string }, { access }) {
        // The requirement of one field.
        if (!access.scopes.has('write:messages')) {
          throw createGraphQLError('The access token does not allow this.', { extensions: { code: 'FORBIDDEN' } });
        }
        return `${access.claims.sub}: ${text}`;
      },
    },
  },
});

/** Every request needs a token; resolvers check further requirements of fields. */
export function createGraphql(resourceServer: ResourceServer): Server {
  const protect = createProtect(resourceServer);
  const yoga = createYoga<Context>({ schema });
  return createServer(protect({}, (request, response, access) => yoga(request, response, { access })));
}
