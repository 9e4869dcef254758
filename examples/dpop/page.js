import { createDpopFetch, hash } from './dpop-client.js';

const issuer = 'https://localhost:9443/';
const metadata = await (await fetch(`${issuer}.well-known/openid-configuration`)).json();
const client = { client_id: 'portcullis-app', redirect_uri: `${location.origin}/` };
const code = new URLSearchParams(location.search).get('code');

if (code === null) {
  // PKCE (RFC 7636): only this page can use the code.
  const verifier = crypto.randomUUID() + crypto.randomUUID();
  sessionStorage.setItem('verifier', verifier);
  const challenge = { code_challenge: await hash(verifier), code_challenge_method: 'S256' };
  const request = { ...client, ...challenge, response_type: 'code', scope: 'openid read:messages' };
  location.assign(`${metadata.authorization_endpoint}?${new URLSearchParams(request)}`);
} else {
  const dpopFetch = await createDpopFetch();
  const verifier = sessionStorage.getItem('verifier') ?? '';
  const grant = { ...client, grant_type: 'authorization_code', code, code_verifier: verifier };
  const response = await dpopFetch(metadata.token_endpoint, { method: 'POST', body: new URLSearchParams(grant) });
  const { access_token: token } = await response.json();
  const messages = await dpopFetch('http://localhost:8000/api/private-scoped', { token });
  document.body.textContent = `${messages.status} ${await messages.text()}`;
}
