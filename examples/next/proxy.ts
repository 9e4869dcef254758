import { createResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/fetch';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const authorize = createAuthorize(createResourceServer({ issuer, audience }));

/** Sends refusals; other requests continue to their route. */
export const proxy = authorize({ scopes: ['read:messages'] });

/** The protected paths. Next.js reads this without running the file. */
export const config = { matcher: '/api/:path*' };
