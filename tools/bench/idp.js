// The identity provider of a bench run, in its own process: discovery and keys over TLS on loopback.
import { readFileSync } from 'node:fs';
import { startProvider } from '../shared/provider.js';

const { CERTIFICATE = '', KEY = '', JWKS = '' } = process.env;
const identity = { certificate: readFileSync(CERTIFICATE), key: readFileSync(KEY) };
const { keys } = JSON.parse(readFileSync(JWKS, 'utf8'));
const { domain } = await startProvider({
  identity,
  keys: keys.map((jwk) => ({ jwk })),
  maxAge: 3600,
  host: '127.0.0.1',
});
process.stdout.write(`${domain}\n`);
