// HAProxy's jwt_verify with the claim rules of its documentation; the proxy responds itself.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messages } from './settings.js';

/**
 * Writes the configuration; the command line. One thread: it has one processor. With an upstream, what is allowed goes
 * there.
 *
 * @param {any} about
 */
export function haproxyCommand({ port, issuer, audience, tokenKeyFile, folder, upstream }) {
  const file = join(folder, upstream === undefined ? 'haproxy.cfg' : 'haproxy-proxy.cfg');
  const refuse = (condition) =>
    `  http-request return status 401 content-type application/json string '{"error":"invalid_token"}' hdr www-authenticate Bearer ${condition}`;
  const lines = [
    'global',
    '  nbthread 1',
    '  maxconn 1000',
    'defaults',
    '  mode http',
    '  timeout client 30s',
    '  timeout server 30s',
    '  timeout connect 5s',
    '  timeout http-keep-alive 30s',
    'frontend api',
    `  bind 127.0.0.1:${port}`,
    `  http-request return status 200 content-type application/json string '{"message":"${messages.public}"}' if { path /api/public }`,
    refuse('unless { req.hdr(authorization) -m found }'),
    "  http-request set-var(txn.alg) http_auth_bearer,jwt_header_query('$.alg')",
    "  http-request set-var(txn.iss) http_auth_bearer,jwt_payload_query('$.iss')",
    "  http-request set-var(txn.aud0) http_auth_bearer,jwt_payload_query('$.aud[0]')",
    "  http-request set-var(txn.aud1) http_auth_bearer,jwt_payload_query('$.aud[1]')",
    "  http-request set-var(txn.exp) http_auth_bearer,jwt_payload_query('$.exp','int')",
    "  http-request set-var(txn.sub) http_auth_bearer,jwt_payload_query('$.sub')",
    '  http-request set-var(txn.now) date()',
    refuse('unless { var(txn.alg) -m str RS256 }'),
    refuse(`unless { var(txn.iss) -m str ${issuer} }`),
    refuse(`unless { var(txn.aud0) -m str ${audience} } or { var(txn.aud1) -m str ${audience} }`),
    refuse('unless { var(txn.exp) -m found }'),
    refuse('if { var(txn.exp),sub(txn.now) -m int le 0 }'),
    refuse(`unless { http_auth_bearer,jwt_verify(txn.alg,"${tokenKeyFile}") -m int 1 }`),
    ...(upstream === undefined ? answerByItself : passOn(upstream)),
    '',
  ];
  writeFileSync(file, lines.join('\n'));
  return ['/usr/sbin/haproxy', '-f', file, '-db'];
}

const answerByItself = [
  `  http-request return status 200 content-type application/json lf-string '{"message":"${messages.private}","user_id":"%[var(txn.sub)]"}' hdr cache-control no-store if { path /api/private }`,
  '  http-request return status 404',
];
const passOn = (upstream) => [
  '  default_backend upstream',
  'backend upstream',
  '  http-reuse always',
  `  server upstream ${upstream}`,
];
