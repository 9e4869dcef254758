import { readFileSync } from 'node:fs';
import { createDpopFetch } from './dpop-client.js';

const { ISSUER: issuer = 'https://localhost:9443/', API: api = 'http://localhost:8000/api/private-scoped' } =
  process.env;
const secret = readFileSync(String(process.env.CLIENT_SECRET_FILE), 'utf8').trim();
const dpopFetch = await createDpopFetch();
const metadata = await (await fetch(`${issuer}.well-known/openid-configuration`)).json();
// The token is bound to the key, because the request for it has a proof.
const response = await dpopFetch(metadata.token_endpoint, {
  method: 'POST',
  headers: { authorization: `Basic ${btoa(`portcullis-service:${secret}`)}` },
  body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'read:messages' }),
});
const { access_token: token, token_type: type } = await response.json();
// Two requests: the first is repeated with the nonce of its 401, the second has the nonce at once.
for (let count = 0; count < 2; count++) {
  const { status } = await dpopFetch(api, { token });
  process.stdout.write(`${type} ${status}\n`);
}
