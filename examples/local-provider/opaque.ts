import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { createIntrospection, createResourceServer } from 'portcullis';

const { ISSUER: issuer = 'https://localhost:9443/', AUDIENCE: audience = 'https://api.example.com/' } = process.env;
const { CLIENT_SECRET_FILE: file = `${homedir()}/.cache/portcullis/identity/client-secret` } = process.env;

/** Validates opaque tokens by introspection, and JWTs by their signature. */
export const resourceServer = createResourceServer({
  issuer,
  audience,
  introspection: createIntrospection({
    endpoint: new URL('dev/introspection', issuer).href,
    issuer,
    clientId: 'portcullis-service',
    clientSecret: readFileSync(file, 'utf8').trim(),
  }),
});
