import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { defaultIdentity, overrideHeaders } from '../../src/gate/identity/identity-headers.ts';
import { findHeaderActions } from '../../src/gate/proxy/headers.ts';
import { caseSchema, readCases, runCases } from '../../src/gate/review/rule-cases.ts';
import { readCodeBlocks } from '../support/pages.ts';
import { readValidRules } from '../support/read-rules.ts';

const page = readFileSync('docs/gate/rules.md', 'utf8');
const pages = readdirSync('docs/gate').map((name) => readFileSync(`docs/gate/${name}`, 'utf8'));
const files = readdirSync('deploy/gate');
const identity = Object.keys(defaultIdentity).map((name) => name.toLowerCase());
const asked = ['dpop', 'origin', 'access-control-request-method'];
const errors = [
  ...['www-authenticate', 'dpop-nonce', 'retry-after', 'content-type', 'x-request-id', 'vary'],
  ...['origin', 'credentials'].map((name) => `access-control-allow-${name}`),
  'access-control-expose-headers',
];

/** What the placeholders of the top of each file stand for. */
const values: Readonly<Record<string, string>> = {
  ...{ HOST: 'api.example', PORT: '8443', ADDRESS: '0.0.0.0', NAMESPACE: 'default', FOLDER: '/tmp/edge' },
  ...{ CERTIFICATE: '/tmp/cert.pem', KEY: '/tmp/key.pem', GATE: '127.0.0.1:8000', UPSTREAM: '127.0.0.1:3000' },
  ...{ GATE_HOST: '127.0.0.1', GATE_PORT: '8000', UPSTREAM_HOST: '127.0.0.1', UPSTREAM_PORT: '3000' },
};

const read = (file: string): string =>
  readFileSync(`deploy/gate/${file}`, 'utf8').replace(/@([A-Z_]+)@/g, (word, name: string) => values[name] ?? word);

/** Every list of texts in a document, by the name of the member that it stands under. */
function listsIn(value: unknown, name = ''): readonly (readonly [name: string, texts: readonly string[]])[] {
  if (Array.isArray(value)) {
    const texts = value.map((item: unknown) => {
      const exact = typeof item === 'object' && item !== null && 'exact' in item ? item.exact : item;
      return typeof exact === 'string' ? exact.toLowerCase() : '';
    });
    return [[name, texts], ...value.flatMap((item) => listsIn(item, name))];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => listsIn(member, key === 'patterns' ? name : key));
}

function parse(file: string): readonly unknown[] {
  const documents = parseAllDocuments(read(file), { strict: true, uniqueKeys: true });
  return (Array.isArray(documents) ? documents : []).map((document) => {
    expect([...document.errors, ...document.warnings]).toEqual([]);
    return document.toJS();
  });
}

describe('configurations in YAML', () => {
  it.each<[string, string, readonly string[]]>([
    ['traefik.yml', 'authRequestHeaders', ['authorization', ...asked]],
    ['traefik.yml', 'authResponseHeaders', identity],
    ['envoy.yaml', 'allowed_headers', ['authorization', 'x-forwarded-proto', ...asked]],
    ['envoy.yaml', 'allowed_upstream_headers', identity],
    ['envoy.yaml', 'allowed_client_headers', errors],
    ['envoy.yaml', 'allowed_client_headers_on_success', ['dpop-nonce']],
    ['istio.yaml', 'includeRequestHeadersInCheck', ['authorization', 'x-forwarded-proto', ...asked]],
    ['istio.yaml', 'headersToUpstreamOnAllow', identity],
    ['istio.yaml', 'headersToDownstreamOnDeny', errors],
    ['istio.yaml', 'headersToDownstreamOnAllow', ['dpop-nonce']],
    ['gateway-api.yaml', 'allowedHeaders', ['x-forwarded-proto', ...asked]],
    ['gateway-api.yaml', 'allowedResponseHeaders', identity],
  ])('%s: %s names every header that it must', (file, member, names) => {
    const lists = parse(file).flatMap((document) => listsIn(document));
    const found = lists.filter(([name]) => name === member).flatMap(([, texts]) => texts);
    expect(found).toEqual(expect.arrayContaining([...names]));
  });

  it.each([
    ['traefik.yml', 'trustForwardHeader: false'],
    ['envoy.yaml', 'failure_mode_allow: false'],
    ['envoy.yaml', 'status_on_error: { code: ServiceUnavailable }'],
    ['envoy.yaml', 'normalize_path: false'],
    ['envoy.yaml', 'num_retries: 0'],
    ['istio.yaml', 'failOpen: false'],
    ['istio.yaml', "statusOnError: '503'"],
    ['istio.yaml', 'normalization: NONE'],
    ['istio.yaml', 'attempts: 0'],
    ['traefik.yml', 'http.aliasHeadersStrategy: delete'],
    ['envoy.yaml', 'headers_with_underscores_action: DROP_HEADER'],
    ['envoy.yaml', 'if not name:match("^:?[%w-]+$")'],
    ['istio.yaml', 'if not name:match("^:?[%w-]+$")'],
  ])('%s says %s', (file, text) => {
    expect(read(file)).toContain(text);
  });
});

describe('spellings of the identity headers', () => {
  /** Each combination of hyphens and underscores. */
  const spell = (name: string): readonly string[] =>
    name
      .split('-')
      .reduce<readonly string[]>(
        (spelled, part) =>
          spelled.length === 0 ? [part] : spelled.flatMap((each) => [`${each}-${part}`, `${each}_${part}`]),
        [],
      );
  const { http } = parse('traefik.yml')[0] as {
    readonly http: {
      readonly routers: { readonly api: { readonly middlewares: readonly string[] } };
      readonly middlewares: { readonly strangers: { readonly headers: { readonly customRequestHeaders: object } } };
    };
  };
  // Traefik compares names in any case.
  const removed = Object.entries(http.middlewares.strangers.headers.customRequestHeaders).map(
    ([name, value]) => `${name.toLowerCase()}=${value}`,
  );

  it.each([...identity, ...overrideHeaders].flatMap(spell))('traefik.yml removes %s', (name) => {
    expect(removed).toContain(`${name}=`);
  });

  it('traefik.yml removes them before the gate is queried', () => {
    expect(http.routers.api.middlewares).toEqual(['strangers', 'portcullis']);
  });
});

/** Headers that only a proxy may set, and that every file removes: the gate removes these and every other `X-Forwarded-*`. */
const proxyHeaders = [
  ...['forwarded', 'x-real-ip', 'proxy'],
  ...['prefix', 'method', 'uri', 'user'].map((name) => `x-forwarded-${name}`),
];

describe('headers that only a proxy may set', () => {
  it.each(proxyHeaders)('%s → the gate as the proxy removes it', (name) => {
    expect(findHeaderActions([], 'remove')(name)).toBe('drop');
  });

  it.each(files.filter((file) => file !== 'haproxy.lua'))('%s removes each', (file) => {
    const text = read(file).toLowerCase();
    const patterns: Readonly<Record<string, readonly string[]>> = {
      Caddyfile: ['-*forwarded*', '-x-real*', '-x_real*', '-proxy'],
      'haproxy.cfg': ['x-forwarded- -m beg', 'del-header forwarded', 'del-header x-real-ip', 'del-header proxy'],
      'envoy.yaml': ['^x%-forwarded%-', '"forwarded"', '"x-real-ip"', '"proxy"'],
      'istio.yaml': ['^x%-forwarded%-', '"forwarded"', '"x-real-ip"', '"proxy"'],
    };
    for (const part of patterns[file] ?? proxyHeaders) expect(text).toContain(part);
  });
});

describe('the proxies that the tests do not start', () => {
  it.each(['envoy.yaml', 'istio.yaml'])('%s removes every override header', (file) => {
    const [, list = ''] = /ipairs\(\{([^}]*)\}\)/.exec(read(file)) ?? [];
    expect(list.match(/[\w-]+/g)).toEqual(expect.arrayContaining([...overrideHeaders]));
  });

  it('gateway-api.yaml removes every override header', () => {
    const removed = parse('gateway-api.yaml')
      .flatMap((document) => listsIn(document))
      .find(([name]) => name === 'remove');
    expect(removed?.[1]).toEqual(expect.arrayContaining([...overrideHeaders, ...proxyHeaders]));
    expect(removed?.[1].length).toBeLessThanOrEqual(16);
  });

  it.each([
    ['envoy.yaml', 'WebSocket', 'upgrade_configs: [{ upgrade_type: websocket }]'],
    ['envoy.yaml', 'streams without a total limit', 'timeout: 0s'],
    ['gateway-api.yaml', 'streams without a total limit', 'request: 0s'],
    ['traefik.yml', 'uploads of any size', 'forwardBody: false'],
    ['traefik.yml', 'uploads of any duration', 'transport.respondingTimeouts.readTimeout (0)'],
    ['envoy.yaml', 'the scheme of Envoy, not of the client', 'use_remote_address: true'],
  ])('%s passes %s', (file, _what, text) => {
    expect(read(file)).toContain(text);
  });

  it.each(['envoy.yaml', 'istio.yaml', 'gateway-api.yaml', 'traefik.yml'])('%s limits no body', (file) => {
    expect(read(file)).not.toMatch(
      /max_request_bytes|maxRequestBody|per_connection_buffer_limit|with_request_body|buffering:/,
    );
  });
});

describe('each file', () => {
  it.each(files)('%s: every placeholder is explained at its top, or in the file that loads it', (file) => {
    const text = readFileSync(`deploy/gate/${file}`, 'utf8');
    const main = file === 'haproxy.lua' ? readFileSync('deploy/gate/haproxy.cfg', 'utf8') : text;
    const used = new Set([...text.matchAll(/@[A-Z_]+@/g)].map(([word]) => word));
    for (const word of used) expect(main).toMatch(new RegExp(`^# +${word} `, 'm'));
  });

  it.each(files)('%s: a page names it', (file) => {
    expect(pages.join('')).toContain(`](../../deploy/gate/${file})`);
  });

  it.each(files.filter((file) => !file.endsWith('.yaml') && !file.endsWith('.yml')))(
    '%s sets and copies every identity header',
    (file) => {
      const text = readFileSync(`deploy/gate/${file}`, 'utf8').toLowerCase();
      if (file.startsWith('haproxy')) expect(text).toContain('x-auth-');
      else for (const name of identity) expect(text).toContain(name);
    },
  );
});

describe('the page', () => {
  const blocks = readCodeBlocks('docs/gate/rules.md').flatMap(({ language, text }) =>
    language === 'json' ? [text] : [],
  );
  const [rules = ''] = blocks;
  const cases = blocks.find((text) => text.startsWith('[')) ?? '';

  it('its rules can be used, and its cases come out as it says', async () => {
    const listed = await readCases({ name: 'cases.json', text: cases });
    if (listed.kind === 'problems') throw new Error(JSON.stringify(listed.problems));
    const samples = listed.cases.map(({ sample }) => sample);
    expect(samples.length).toBeGreaterThan(3);
    const outcomes = await runCases(readValidRules(rules), samples);
    expect(outcomes.filter(({ asExpected }) => !asExpected)).toEqual([]);
  });

  it('its table of requests says which rule decides', async () => {
    const rows = [...page.matchAll(/^\| `([A-Z]+) (\S+)` \| (?:`([\w-]+)`|none) \|/gm)];
    expect(rows.length).toBeGreaterThan(5);
    for (const [, method = '', url = '', id] of rows) {
      const full = url.startsWith('/') ? `https://api.example${url}` : url;
      const sample = { method, url: full, expect: 'allowed', dpop: false, headers: {} };
      const [outcome] = await runCases(readValidRules(rules), [sample]);
      expect(outcome?.rule, `${method} ${url}`).toBe(id);
    }
  });

  it('every member of a rule and of a case is documented', () => {
    for (const name of Object.keys(caseSchema.entries)) expect(page).toContain(name);
  });
});
