import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { makeFolder } from '../../tools/shared/folder.js';
import { lastHeaders, useUpstream } from '../support/gate-edge.ts';
import { useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { readCodeBlocks } from '../support/pages.ts';
import { needs } from '../support/programs.ts';
import { edges, startEdge } from '../support/proxy-server.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';

const blocks = readCodeBlocks('docs/gate/proxies.md');
/** The words of the shipped files instead of the values of the page, for the values of the test. */
const restore = (page: string): string =>
  page
    .replaceAll('api.example.com', '@HOST@')
    .replaceAll('127.0.0.1:8000', '@GATE@')
    .replaceAll('127.0.0.1:3000', '@UPSTREAM@')
    .replaceAll('/var/lib/portcullis-edge', '@FOLDER@')
    .replace(/\b443\b/g, '@PORT@');

/** A server that exists, around the fragment: its file, and what it loads. */
const existing = {
  nginx: {
    file: 'nginx.conf',
    parts: ['portcullis-http.conf', 'portcullis-server.conf'],
    write: (block: string) =>
      `pid @FOLDER@/nginx.pid;\nerror_log @FOLDER@/error.log;\nevents {}\n${block
        .replace('http {', 'http {\n  access_log off;\n  ssl_certificate @CERTIFICATE@;\n  ssl_certificate_key @KEY@;')
        .replace('listen @PORT@', 'listen 127.0.0.1:@PORT@')}`,
  },
  caddy: {
    file: 'Caddyfile',
    parts: ['portcullis.caddy'],
    write: (block: string) =>
      `{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n${block.replace(
        '\timport portcullis\n',
        '\ttls @CERTIFICATE@ @KEY@\n\timport portcullis\n',
      )}`,
  },
  haproxy: {
    file: 'haproxy.cfg',
    parts: ['haproxy.lua'],
    write: () => `global
  tune.bufsize 49152
  lua-load @FOLDER@/haproxy.lua
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend api
  bind 127.0.0.1:@PORT@ ssl crt @CERTIFICATE@
  default_backend api
backend api
  server api @UPSTREAM@
`,
  },
} as const;

const provider = await useTestProvider();
const certificates = await createTestCertificates();
const upstream = await useUpstream();
const issuers = { staff: { issuer: provider.issuer, audience: provider.audience } };
const gate = await useGate(provider, { issuers, rules: [{ id: 'all', path: '/**' }] });
await gate.findLog(({ event }) => event === 'keys_fetched');
/** A folder with the package, as an operator has it. */
function makePackage(): string {
  const folder = makeFolder('fragment');
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync('deploy/gate', join(folder, 'node_modules/portcullis/deploy/gate'), { recursive: true });
  return folder;
}

describe.each(['nginx', 'caddy', 'haproxy'] as const)('fragment of docs/gate/proxies.md in %s', (name) => {
  it('no token → 401 with its challenge; a token → 200 with the identity of the gate only', {
    ...needs(name),
  }, async () => {
    const folder = makePackage();
    const { file, parts, write } = existing[name];
    cpSync('deploy/gate/haproxy.lua', join(folder, 'haproxy.lua'));
    const of = blocks.filter(({ section }) => section.toLowerCase() === name);
    const block = restore(of.find(({ language }) => /^(?:nginx|text)$/.test(language))?.text ?? '');
    if (name === 'haproxy') writeFileSync(join(folder, 'your.cfg'), write(block));
    else writeFileSync(join(folder, file), write(block));
    for (const { language, text: lines } of of)
      if (language === 'console') execFileSync('/bin/sh', ['-ec', restore(lines)], { cwd: folder });
    const templates = [file, ...parts].map((part) => pathToFileURL(join(folder, part)));
    const values = { GATE: gate.url.replace('http://', ''), UPSTREAM: upstream.address };
    const edge = await startEdge({ ...edges[name], templates }, { certificates, values });
    const call = (...headers: readonly string[]) => send(edge.origin, '/orders', { ca: certificates.ca, headers });
    onTestFinished(() => edge.stop());
    const { status, headers, body } = await call();
    expect([status, headers.get('www-authenticate'), body]).toEqual([
      401,
      expect.stringContaining('Bearer'),
      expect.stringContaining('unauthorized'),
    ]);
    const authorization = `Bearer ${await provider.sign({ sub: 'alice' })}`;
    expect((await call('Authorization', authorization, 'X-Auth-Subject', 'mallory')).status).toBe(200);
    expect(lastHeaders(upstream)['x-auth-subject']).toBe('alice');
  });
});

it(
  'fragment of docs/gate/proxies.md for Traefik → the middlewares of the complete file, which the router names',
  needs('sed'),
  () => {
    const folder = makePackage();
    const of = blocks.filter(({ section }) => section === 'Traefik');
    const textOf = (name: string): string => of.find(({ language }) => language === name)?.text ?? '';
    execFileSync('/bin/sh', ['-ec', textOf('console')], { cwd: folder });
    const fragment: unknown = parse(readFileSync(join(folder, 'portcullis.yml'), 'utf8'));
    const { http } = parse(readFileSync('deploy/gate/traefik.yml', 'utf8').replaceAll('@GATE@', '127.0.0.1:8000'));
    expect(fragment).toEqual({ http: { middlewares: http.middlewares } });
    const { api } = parse(textOf('yaml')).http.routers;
    expect(api.middlewares).toEqual(http.routers.api.middlewares.map((name: string) => `${name}@file`));
  },
);
