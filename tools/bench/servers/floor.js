// Raw node:http with the responses of the service and only the signature checks of FLOOR.
import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { PORT, FLOOR = '', ANSWERS = '', TOKEN_KEY = '', PROOF_KEY = '' } = process.env;
/** Responses of the service by path: `{headers, body}`. */
const answers = new Map(Object.entries(JSON.parse(ANSWERS)));
const rsaKey = createPublicKey(readFileSync(TOKEN_KEY));
/** @type {import('node:crypto').VerifyKeyObjectInput} */
const ecKey = { key: createPublicKey(readFileSync(PROOF_KEY)), dsaEncoding: 'ieee-p1363' };

const checkJws = (jws, key) => {
  const dot = jws.lastIndexOf('.');
  return verify('sha256', Buffer.from(jws.slice(0, dot)), key, Buffer.from(jws.slice(dot + 1), 'base64url'));
};
const checks = {
  raw: () => true,
  token: ({ authorization }) => checkJws(authorization.slice(authorization.indexOf(' ') + 1), rsaKey),
  proof: ({ dpop }) => checkJws(dpop, ecKey),
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
