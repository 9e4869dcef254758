// Servers to compare the gate with, as data: start, request, and the ratios of their figures.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serverWords, serviceWords } from './runtimes.js';
import { haproxyCommand } from './servers/haproxy.js';
import { servers, upstream } from './servers.js';

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

/** Decides about one cached token. */
const one = { checks: 'none', workloads: ['warm'] };
const gate = (hasUpstream = false) => ({
  command: ({ build }) => serviceWords('here', build).with(-1, 'gate'),
  environment: ({ issuer, audience, port, upstreamUrl }) => ({
    ISSUER: issuer,
    IDP_AUDIENCE: audience,
    HOST: '127.0.0.1',
    PORT: port,
    ADMIN_PORT: 'off',
    ...(hasUpstream && { UPSTREAM: upstreamUrl }),
  }),
  missing: present,
  ...one,
});
const script = (name) => ({
  command: () => serverWords(name),
  environment: ({ port, upstreamUrl }) => ({ PORT: port, UPSTREAM: upstreamUrl }),
  missing: present,
  ...one,
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
  ...one,
});

/** nginx with the configuration that `write` returns for its own folder. */
const nginxWith = (write) => ({
  command({ folder, port, ...about }) {
    const own = join(folder, `nginx-${port}`);
    const file = join(own, 'nginx.conf');
    mkdirSync(own, { recursive: true });
    writeFileSync(file, write({ own, port, ...about }));
    return [nginx, '-e', join(own, 'error.log'), '-c', file, '-g', 'daemon off;'];
  },
  environment: () => ({}),
  missing: () => (existsSync(nginx) ? undefined : `${nginx} is not installed`),
  ...one,
});

/** deploy/gate/nginx.conf without TLS, which costs both sides the same, and with one worker. */
const nginxBefore = (name) => ({
  ...nginxWith(({ own, port, upstreamUrl, asked: gate }) => {
    const values = {
      HOST: 'api.example.com',
      PORT: port,
      ADDRESS: '127.0.0.1',
      GATE: new URL(gate).host,
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
    return text.replace(/ {2}# Any other Host[\s\S]*?\n {2}}\n/, '');
  }),
  ...{ with: name, path: '/orders/17' },
});

/** nginx as a proxy with the settings of deploy/gate/nginx.conf that matter without a gate. */
const nginxPlain = nginxWith(({ own, port, upstreamUrl }) => {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${own}/${name};`);
  return `worker_processes 1; pid ${own}/nginx.pid; error_log ${own}/error.log warn; events { worker_connections 4096; }
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
`;
});

/** Only queried by another server. */
const silent = { ready: asked, workloads: [] };

/**
 * Servers by name. `with`: the server that it queries, on the same processor, whose cost is included. `passes`: it is a proxy.
 *
 * @type {Record<string, any>}
 */
export const gateServers = {
  service: { ...servers.portcullis, label: 'the service itself', workloads: ['warm'] },
  gate: { label: 'the gate, next to a proxy', ...gate(), ready: asked, ...asked, workloads: ['warm', 'cold'] },
  'gate-asked': { label: 'the gate behind nginx', ...gate(), ...silent },
  'raw-asked': { label: 'raw node:http behind nginx', ...script('yes'), ...silent },
  'nginx-gate': { label: 'nginx and the gate', ...nginxBefore('gate-asked') },
  'nginx-raw': { label: 'nginx and raw node:http that says yes', ...nginxBefore('raw-asked') },
  go: {
    label: 'sidecar in Go, without a cache',
    ...{ ...sidecar('off'), ready: asked, ...asked, workloads: ['warm', 'cold'] },
  },
  'go-cached': { label: 'sidecar in Go, with a cache', ...sidecar('on'), ready: asked, ...asked },
  'go-asked': { label: 'sidecar in Go behind nginx', ...sidecar('off'), ...silent },
  'go-cached-asked': { label: 'sidecar in Go with a cache behind nginx', ...sidecar('on'), ...silent },
  'nginx-go': { label: 'nginx and the sidecar in Go, without a cache', ...nginxBefore('go-asked') },
  'nginx-go-cached': { label: 'nginx and the sidecar in Go, with a cache', ...nginxBefore('go-cached-asked') },
  proxy: { label: 'the gate as the proxy', ...gate(true), ...passes },
  'nginx-plain': { label: 'nginx as the proxy, no checks', ...nginxPlain, ...passes },
  undici: { label: 'raw undici proxy, no checks', ...script('undici-proxy'), ...passes },
  'http-proxy-3': { label: 'http-proxy-3, no checks', ...script('http-proxy-3'), ...passes, own: true },
  haproxy: {
    ...servers.haproxy,
    label: 'HAProxy jwt_verify as the proxy',
    command: ({ upstreamUrl, ...about }) => haproxyCommand({ ...about, upstream: new URL(upstreamUrl).host }),
    ...one,
    ...passes,
  },
  upstream,
};
