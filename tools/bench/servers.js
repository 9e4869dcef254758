// The servers as data: how each is started, and which workloads say something about it.
import { existsSync } from 'node:fs';
import { processors } from '../shared/processes.js';
import { hasRuntime, serverWords, serviceWords } from './runtimes.js';
import { haproxyCommand } from './servers/haproxy.js';

/** The runtime of the bench. */
const here = `Node ${process.versions.node.split('.')[0]}`;
const bearer = ['open', 'warm', 'cold', 'bad-signature', 'malformed'];
const brief = ['open', 'warm', 'cold', 'dpop'];

const service = (runtime) => ({
  command: ({ build }) => serviceWords(runtime, build),
  environment: ({ domain, audience, port }) => ({
    IDP_DOMAIN: domain,
    IDP_AUDIENCE: audience,
    HOST: '127.0.0.1',
    PORT: port,
    ADMIN_PORT: 'off',
  }),
  missing: () => (hasRuntime(runtime) ? undefined : 'its runtime comes for Linux on x64 alone'),
});
const peer = (script, environment = {}) => ({
  command: () => serverWords(script),
  environment: ({ issuer, jwksUri, audience, port }) => ({
    ISSUER: issuer,
    JWKS_URI: jwksUri,
    AUDIENCE: audience,
    PORT: port,
    NODE_ENV: 'production',
    ...environment,
  }),
  missing: () => undefined,
  workloads: bearer,
  own: true,
});
const floor = (kind, runtime = 'here') => ({
  command: () => serverWords('floor', runtime),
  environment: ({ port, answers, tokenKeyFile, proofKeyFile }) => ({
    PORT: port,
    FLOOR: kind,
    ANSWERS: JSON.stringify(answers),
    TOKEN_KEY: tokenKeyFile,
    PROOF_KEY: proofKeyFile,
  }),
  missing: () => (hasRuntime(runtime) ? undefined : 'its runtime comes for Linux on x64 alone'),
  checks: 'none',
});

/** The service on another version of Node. */
const newer = (version, pace) => {
  const runtime = `node${version}`;
  return { label: `Portcullis, Node ${version}`, ...service(runtime), workloads: brief, pace, own: true };
};

/** Servers by name. `own`: in the packages of the bench. `pace`: DPoP requests a second, more than it can serve. */
export const servers = {
  portcullis: {
    label: `Portcullis, ${here}`,
    ...service('here'),
    workloads: [...bearer, 'dpop'],
    pace: 16_000,
  },
  'raw-floor': { label: `floor: raw node:http, ${here}`, ...floor('raw'), workloads: ['open', 'warm'] },
  'cold-floor': { label: 'floor: and one RS256 check', ...floor('token'), workloads: ['cold'] },
  'dpop-floor': { label: 'floor: and one ES256 check', ...floor('proof'), workloads: ['dpop'], pace: 20_000 },
  'portcullis-node22': newer(22, 20_000),
  'portcullis-node24': newer(24, 20_000),
  'portcullis-node26': newer(26, 25_000),
  'raw-floor-node26': {
    label: 'floor: raw node:http, Node 26',
    ...floor('raw', 'node26'),
    workloads: ['open', 'warm'],
    own: true,
  },
  haproxy: {
    label: 'HAProxy jwt_verify',
    command: haproxyCommand,
    environment: () => ({}),
    missing: () => (existsSync('/usr/sbin/haproxy') ? undefined : '/usr/sbin/haproxy is not installed'),
    workloads: bearer,
  },
  express: {
    label: 'Express + express-oauth2-jwt-bearer',
    ...peer('express'),
    workloads: [...bearer, 'dpop'],
    pace: 6000,
  },
  fastify: { label: 'Fastify + @fastify/jwt', ...peer('fastify') },
  'fastify-cache': { label: 'Fastify + @fastify/jwt, cache', ...peer('fastify', { CACHE: '10000' }) },
  'hono-jose': { label: 'Hono + jose', ...peer('hono-jose') },
};

/** Servers of `--quick`. */
export const quickServers = ['portcullis', 'raw-floor', 'cold-floor', 'dpop-floor'];

/** The upstream of the proxies; it runs on the processor of wrk. */
export const upstream = {
  label: 'the upstream itself',
  command: () => serverWords('upstream'),
  environment: ({ port }) => ({ PORT: port }),
  missing: () => undefined,
  checks: 'none',
  processor: processors.load,
  workloads: ['warm'],
};
