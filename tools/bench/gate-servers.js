// Servers to compare the gate with, as data: start, request, and the ratios of their figures.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serverWords, serviceWords } from './runtimes.js';
import { haproxyCommand } from './servers/haproxy.js';
import { servers } from './servers.js';

const present = () => undefined;
/** Headers of a proxy to the gate. */
const forwarded = {
  'X-Forwarded-Method': 'GET',
  'X-Forwarded-Proto': 'https',
  'X-Forwarded-Host': 'api.example.com',
  'X-Forwarded-Uri': '/orders/17?page=1',
};
const asked = { path: '/forward-auth', headers: forwarded };
const passes = { path: '/orders/17', passes: true };
const nginx = '/usr/sbin/nginx';

const gate = (more = {}) => ({
  command: () => serviceWords('here', more.folder).with(-1, 'gate'),
  environment: ({ issuer, audience, port, upstreamUrl }) => ({
    ISSUER: issuer,
    IDP_AUDIENCE: audience,
    HOST: '127.0.0.1',
    PORT: port,
    ADMIN_PORT: 'off',
    ...(more.upstream && { UPSTREAM: upstreamUrl }),
  }),
  missing: present,
});
const script = (name) => ({
  command: () => serverWords(name),
  environment: ({ port, upstreamUrl }) => ({ PORT: port, UPSTREAM: upstreamUrl }),
  missing: present,
  checks: 'none',
});

/** A sidecar in Go, compiled from Debian's packages at its first start. */
const sidecar = (cache) => ({
  command: ({ folder }) => {
    const binary = join(folder, 'sidecar');
    const source = fileURLToPath(new URL('servers/sidecar.go', import.meta.url));
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', CGO_ENABLED: '0' };
    if (!existsSync(binary)) execFileSync('go', ['build', '-o', binary, source], { env });
    return [binary];
  },
  environment: ({ issuer, audience, port, tokenKeyFile }) => ({
    ...{ ISSUER: issuer, AUDIENCE: audience, PORT: port, TOKEN_KEY: tokenKeyFile },
    ...{ CACHE: cache, GOMAXPROCS: '1' },
  }),
  missing: () =>
    existsSync('/usr/bin/go') && existsSync('/usr/share/gocode/src/github.com/golang-jwt/jwt')
      ? undefined
      : 'golang-go and golang-github-golang-jwt-jwt-dev are not installed',
});

/** deploy/gate/nginx.conf without TLS, which costs both sides the same, and with one worker. */
const nginxBefore = (name) => ({
  command: ({ folder, port, upstreamUrl, gates }) => {
    const own = join(folder, `nginx-${name}`);
    mkdirSync(own, { recursive: true });
    const values = {
      HOST: 'api.example.com',
      PORT: port,
      ADDRESS: '127.0.0.1',
      GATE: new URL(gates[name]).host,
      UPSTREAM: new URL(upstreamUrl).host,
      FOLDER: own,
    };
    const text = readFileSync(new URL('../../deploy/gate/nginx.conf', import.meta.url), 'utf8')
      .replace(/@([A-Z_]+)@/g, (all, key) => String(values[key] ?? all))
      .replace(/^ *ssl_.*\n/gm, '')
      .replace(/ ssl http2( default_server)?;/g, ';')
      .replace('worker_processes auto', 'worker_processes 1')
      .replace(/access_log .*;/, 'access_log off;\n  keepalive_requests 1000000000;');
    // The server for other names must be first; without TLS the two would be one.
    const [before, after] = text.split(/ {2}# Any other Host[\s\S]*?\n {2}}\n/);
    const file = join(own, 'nginx.conf');
    writeFileSync(file, `${before}${after}`);
    return [nginx, '-e', join(own, 'error.log'), '-c', file, '-g', 'daemon off;'];
  },
  environment: () => ({}),
  missing: () => (existsSync(nginx) ? undefined : `${nginx} is not installed`),
});

/** nginx as a proxy with the settings of deploy/gate/nginx.conf that matter without a gate. */
const nginxPlain = {
  command: ({ folder, port, upstreamUrl }) => {
    const own = join(folder, 'nginx-plain');
    mkdirSync(own, { recursive: true });
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${own}/${name};`,
    );
    const file = join(own, 'nginx.conf');
    writeFileSync(
      file,
      `worker_processes 1; pid ${own}/nginx.pid; error_log ${own}/error.log warn; events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; ${paths.join(' ')}
  upstream application { server ${new URL(upstreamUrl).host}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://application;
      proxy_http_version 1.1;
      proxy_set_header Connection '';
      proxy_request_buffering off;
      proxy_buffering off;
    }
  }
}
`,
    );
    return [nginx, '-e', join(own, 'error.log'), '-c', file, '-g', 'daemon off;'];
  },
  environment: () => ({}),
  missing: () => (existsSync(nginx) ? undefined : `${nginx} is not installed`),
  checks: 'none',
};

/** The upstream of the proxies; it runs on the processor of wrk. */
export const upstream = script('upstream');

/**
 * Servers by name. `with`: the server that it queries, on the same processor, whose cost is included. `passes`: it is a proxy.
 *
 * @type {Record<string, any>}
 */
export const gateServers = {
  service: { ...servers.portcullis, label: 'the service itself', path: '/api/private' },
  'service-told': {
    ...servers.portcullis,
    label: 'the service itself, sent what a proxy tells a gate',
    path: '/api/private',
    headers: forwarded,
  },
  gate: { label: 'the gate, next to a proxy', ...gate(), ready: asked, ...asked },
  'gate-asked': { label: 'the gate behind nginx', ...gate(), ready: asked, silent: true },
  'raw-asked': { label: 'raw node:http behind nginx', ...script('yes'), silent: true },
  'nginx-gate': { label: 'nginx and the gate', ...nginxBefore('gate-asked'), with: 'gate-asked', path: '/orders/17' },
  'nginx-raw': {
    label: 'nginx and raw node:http that says yes',
    ...nginxBefore('raw-asked'),
    with: 'raw-asked',
    path: '/orders/17',
  },
  // Each request has a new token.
  'gate-new': { label: 'the gate, each token new', ...gate(), ready: asked, ...asked, isNew: true },
  'go-new': { label: 'sidecar in Go, each token new', ...sidecar('off'), ready: asked, ...asked, isNew: true },
  go: { label: 'sidecar in Go, without a cache', ...sidecar('off'), ready: asked, ...asked },
  'go-cached': { label: 'sidecar in Go, with a cache', ...sidecar('on'), ready: asked, ...asked },
  'go-asked': { label: 'sidecar in Go behind nginx', ...sidecar('off'), ready: asked, silent: true },
  'go-cached-asked': { label: 'sidecar in Go with a cache behind nginx', ...sidecar('on'), ready: asked, silent: true },
  'nginx-go': {
    label: 'nginx and the sidecar in Go, without a cache',
    ...nginxBefore('go-asked'),
    ...{ with: 'go-asked', path: '/orders/17' },
  },
  'nginx-go-cached': {
    label: 'nginx and the sidecar in Go, with a cache',
    ...nginxBefore('go-cached-asked'),
    ...{ with: 'go-cached-asked', path: '/orders/17' },
  },
  proxy: { label: 'the gate as the proxy', ...gate({ upstream: true }), ...passes },
  'nginx-plain': { label: 'nginx as the proxy, no checks', ...nginxPlain, ...passes },
  undici: { label: 'raw undici proxy, no checks', ...script('undici-proxy'), ...passes },
  'http-proxy-3': { label: 'http-proxy-3, no checks', ...script('http-proxy-3'), ...passes },
  haproxy: {
    ...servers.haproxy,
    label: 'HAProxy jwt_verify as the proxy',
    command: ({ upstreamUrl, ...about }) => haproxyCommand({ ...about, upstream: new URL(upstreamUrl).host }),
    ...passes,
  },
};

/** The aims, and a limit of one of them: whose processor time is divided by whose. */
export const gateRatios = {
  decision: ['service', 'gate'],
  told: ['service-told', 'service'],
  nginx: ['nginx-raw', 'nginx-gate'],
  undici: ['undici', 'proxy'],
  'http-proxy-3': ['http-proxy-3', 'proxy'],
  haproxy: ['haproxy', 'proxy'],
  'undici-haproxy': ['haproxy', 'undici'],
  go: ['go', 'gate'],
  'go-cached': ['go-cached', 'gate'],
  'go-new': ['go-new', 'gate-new'],
  'nginx-go': ['nginx-go', 'nginx-gate'],
  'nginx-go-cached': ['nginx-go-cached', 'nginx-gate'],
};

/** The gate of this build and of the build in `folder`, in each of its roles; `there` marks the other one. */
export function comparedGates(folder) {
  const { gate: decision, 'gate-asked': asked, 'nginx-gate': nginxGate, proxy } = gateServers;
  const there = 'the other build: ';
  return {
    servers: {
      gate: decision,
      'gate-there': { ...decision, ...gate({ folder }), label: `${there}${decision.label}` },
      'gate-asked': asked,
      'gate-asked-there': { ...asked, ...gate({ folder }), label: `${there}${asked.label}` },
      'nginx-gate': nginxGate,
      'nginx-there': {
        ...nginxGate,
        ...nginxBefore('gate-asked-there'),
        with: 'gate-asked-there',
        label: `${there}${nginxGate.label}`,
      },
      proxy,
      'proxy-there': { ...proxy, ...gate({ folder, upstream: true }), label: `${there}${proxy.label}` },
    },
    ratios: { decision: ['gate-there', 'gate'], nginx: ['nginx-there', 'nginx-gate'], proxy: ['proxy-there', 'proxy'] },
  };
}
