import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const protect = createProtect(resourceServer);

export const GET = protect({ scopes: ['read:messages'] }, (_request, { claims }) =>
  Response.json({ reader: claims.sub }),
);
