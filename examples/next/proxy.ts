import { createResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/fetch';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const authorize = createAuthorize(createResourceServer({ issuer, audience }));

/** Answers a refused request; every other one goes on to its route. */
export const proxy = authorize({ scopes: ['read:messages'] });

/** The paths that it stands before. Next.js reads this without running the file. */
export const config = { matcher: '/api/:path*' };
