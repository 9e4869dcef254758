// Raw node:http with the responses of the service and only the signature checks of FLOOR.
import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { PORT, FLOOR = '', ANSWERS = '', TOKEN_KEY = '', PROOF_KEY = '' } = process.env;
/** Responses of the service by path: `{headers, body}`. */
const answers = new Map(Object.entries(JSON.parse(ANSWERS)));
const rsaKey = createPublicKey(readFileSync(TOKEN_KEY));
const signedAsJws = /** @type {const} */ ({ dsaEncoding: 'ieee-p1363' });
const ecKey = { key: createPublicKey(readFileSync(PROOF_KEY)), ...signedAsJws };

const checkJws = (jws, key) => {
  const dot = jws.lastIndexOf('.');
  return verify('sha256', Buffer.from(jws.slice(0, dot)), key, Buffer.from(jws.slice(dot + 1), 'base64url'));
};
/** The key that the header of a proof names. */
const readKey = (proof) => {
  const { jwk } = JSON.parse(Buffer.from(proof.slice(0, proof.indexOf('.')), 'base64url').toString());
  return { key: createPublicKey({ key: jwk, format: 'jwk' }), ...signedAsJws };
};
const checks = {
  raw: () => true,
  token: ({ authorization }) => checkJws(authorization.slice(authorization.indexOf(' ') + 1), rsaKey),
  proof: ({ dpop }) => checkJws(dpop, ecKey),
  keys: (headers) => checks.token(headers) && checkJws(headers.dpop, readKey(headers.dpop)),
};
const check = checks[FLOOR];

createServer((request, response) => {
  const answer = answers.get(request.url ?? '');
  if (request.url === '/api/private' && !check(request.headers)) {
    response.writeHead(401).end();
    return;
  }
  response.writeHead(200, answer.headers);
  response.end(answer.body);
}).listen(Number(PORT), '127.0.0.1');
