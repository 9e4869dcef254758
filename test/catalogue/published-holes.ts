import type { Reason } from '../../src/core/failures.ts';
import type { SignOptions } from '../support/test-provider.ts';
import { words } from '../support/words.ts';

/** A request of a client, and the decision about it. */
export interface HoleCase {
  readonly name: string;
  /** Target of the request, in its bytes. Default: `/admin`. */
  readonly target?: string;
  /** Default: `api.example`. */
  readonly host?: string;
  /** Header lines of the client: names and values in turn. */
  readonly headers?: readonly string[];
  /** The token of the request. Default: none. */
  readonly token?: {
    readonly claims?: object;
    readonly sign?: SignOptions;
    /** Replaces `alg` in the header after the signature was made. */
    readonly alg?: string;
  };
  /** Reason of the refusal; `admitted` otherwise. */
  readonly decision: Reason | 'admitted';
  /** Decision of a gate beside a proxy that passes on the headers of the client, if it differs. */
  readonly beside?: Reason;
  /** Header lines that an admitted request has at the upstream, by name; `undefined`: none with this name. */
  readonly arrives?: Readonly<Record<string, string | undefined>>;
}

/** A published vulnerability of a comparable product, and the same input here. */
export interface PublishedHole {
  readonly id: string;
  readonly product: string;
  /** The hole, and its effect there. */
  readonly hole: string;
  /** Inputs; or the reason for which this product has no equal surface. */
  readonly here: readonly HoleCase[] | string;
}

const missing = 'missing_credentials';

/** Sorted by product. Each id leads to the advisory at GitHub or NVD. */
export const publishedHoles: readonly PublishedHole[] = [
  {
    id: 'CVE-2026-34457',
    product: 'oauth2-proxy',
    hole: 'a User-Agent of a health check is admitted on any path',
    here: ['GoogleHC/1.0', 'kube-probe/1.31', 'ELB-HealthChecker/2.0'].map((agent) => ({
      name: `User-Agent: ${agent}`,
      headers: ['User-Agent', agent],
      decision: missing,
    })),
  },
  {
    id: 'CVE-2026-40575',
    product: 'oauth2-proxy',
    hole: "the client's X-Forwarded-Uri selects the open rule",
    here: [
      {
        name: 'X-Forwarded-Uri: /public/x',
        headers: ['X-Forwarded-Uri', '/public/x'],
        decision: missing,
        beside: 'bad_forwarded_header',
      },
      ...['X-Original-URL', 'X-Rewrite-URL', 'X-Original-Uri', 'X-Forwarded-Path'].map((name) => ({
        name: `${name}: /public/x`,
        headers: [name, '/public/x'],
        decision: missing as Reason,
      })),
    ],
  },
  {
    id: 'CVE-2026-41059',
    product: 'oauth2-proxy',
    hole: 'a fragment is read as a part of the path, so that a suffix of an open rule is added to a protected path',
    here: ['/nested/secret%23/open', '/nested/secret#/open', '/admin#/public/x', '/admin%23/public/x'].map(
      (target) => ({ name: target, target, decision: 'ambiguous_path' }),
    ),
  },
  {
    id: 'GHSA-7rh7-c77v-6434',
    product: 'oauth2-proxy',
    hole: 'open rules are compared with path and query',
    here: ['/admin?x=/public/x', '/admin?/public/', '/admin?/healthz'].map((target) => ({
      name: target,
      target,
      decision: missing,
    })),
  },
  {
    id: 'GHSA-c5c4-8r6x-56w3',
    product: 'oauth2-proxy',
    hole: 'an e-mail address with two @ has an allowed domain',
    here: 'No rule reads a domain out of a claim: claims are compared as complete values. The same spelling in Host is refused.',
  },
  {
    id: 'RFC 9110 §4.2.4',
    product: 'several proxies',
    hole: 'user information in Host, a@b@c',
    here: ['api.example@open.example', 'open.example@api.example', 'a@b@open.example'].map((host) => ({
      name: `Host: ${host}`,
      host,
      decision: 'bad_host_header',
      beside: 'bad_forwarded_header',
    })),
  },
  {
    id: 'CVE-2025-64484',
    product: 'oauth2-proxy',
    hole: 'X_Forwarded_User reaches a backend that reads it as X-Forwarded-User',
    here: ['X_Auth_Subject', 'x-auth_subject', 'X.Auth.Subject', 'X-AUTH-SUBJECT', 'X~Auth~Subject'].map((name) => ({
      name,
      headers: [name, 'root'],
      token: { claims: { sub: 'alice' } },
      decision: 'admitted',
      arrives: { [name.toLowerCase()]: name.toLowerCase() === 'x-auth-subject' ? 'alice' : undefined },
    })),
  },
  {
    id: 'CVE-2025-48865',
    product: 'Fabio',
    hole: 'Connection of the client removes the identity that the proxy sets',
    here: ['X-Auth-Subject', 'x-auth-subject, X-Forwarded-For', 'close, X-Auth-Scope, X-Auth-Subject'].map((value) => ({
      name: `Connection: ${value}`,
      headers: ['Connection', value],
      token: { claims: { sub: 'alice' } },
      decision: 'admitted',
      arrives: { 'x-auth-subject': 'alice' },
    })),
  },
  {
    id: 'GHSA-p224-6x5r-fjpm',
    product: 'gateways that compare the path as it was sent',
    hole: 'the path is not normalised before rules are compared',
    here: [
      ...words(`
        /public/../admin /public/%2e%2e/admin /public/.%2e/admin /public/./../admin /public//../admin //admin
        /public/..;/admin /public/%5c..%5cadmin /public/%252e%252e/admin /public/%c0%ae%c0%ae/admin
      `),
      ...['/public\\..\\admin'],
    ].map((target) => ({ name: target, target, decision: 'ambiguous_path' })),
  },
  {
    id: 'dadrus/heimdall#3206',
    product: 'heimdall',
    hole: '%2f and %2F are treated differently',
    here: ['/public%2fadmin', '/public%2Fadmin', '/public/%2Fadmin', '/%2fadmin'].map((target) => ({
      name: target,
      target,
      decision: 'ambiguous_path',
    })),
  },
  {
    id: 'dadrus/heimdall#3207',
    product: 'heimdall',
    hole: 'hosts are compared with their case',
    here: ['CLOSED.EXAMPLE', 'Closed.Example', 'closed.example:443'].map((host) => ({
      name: `Host: ${host}`,
      host,
      target: '/public/x',
      decision: 'denied_by_rule',
    })),
  },
  {
    id: 'dadrus/heimdall#3208, #3209, #3315',
    product: 'heimdall',
    hole: 'several Forwarded lines, or addresses and hosts outside their grammar, decide about the client',
    here: [
      ['Forwarded', 'for=127.0.0.1;host=open.example', 'Forwarded', 'for=10.0.0.1'],
      ['Forwarded', 'for="junk\\"x;host=open.example"'],
      ['X-Forwarded-For', 'not an address', 'Forwarded', 'for=unknown'],
    ].map((headers, index) => ({
      name: `set ${index + 1}`,
      headers,
      token: { claims: { sub: 'alice' } },
      decision: 'admitted',
      arrives: { forwarded: undefined, 'x-forwarded-host': 'api.example' },
    })),
  },
  {
    id: 'CVE-2026-39858, CVE-2026-54763, CVE-2026-88011',
    product: 'Traefik',
    hole: 'aliases of forwarded headers and of identity, with underscores and dots, pass',
    here: ['X_Forwarded_Proto', 'X_Forwarded_Host', 'X.Forwarded.For', 'X_Forwarded_Prefix', 'X_Real_Ip'].map(
      (name) => ({
        name,
        headers: [name, 'https'],
        token: { claims: { sub: 'alice' } },
        decision: 'admitted',
        arrives: { [name.toLowerCase()]: undefined },
      }),
    ),
  },
  {
    id: 'CVE-2026-35051',
    product: 'Traefik',
    hole: "the client's X-Forwarded-Prefix reaches the decision",
    here: [{ name: 'X-Forwarded-Prefix: /public', headers: ['X-Forwarded-Prefix', '/public'], decision: missing }],
  },
  {
    id: 'CVE-2026-27587',
    product: 'Caddy',
    hole: 'a path with an escape is compared differently from a path without',
    here: ['/clos%65d/x', '/%63losed/x', '/closed/%78', '/clos%65d/'].map((target) => ({
      name: target,
      target,
      decision: 'denied_by_rule',
    })),
  },
  {
    id: 'CVE-2026-27588',
    product: 'Caddy',
    hole: 'a list of more than 100 hosts is compared with the case of the host',
    here: ['host-7.example', 'HOST-7.EXAMPLE', 'Host-119.Example'].map((host) => ({
      name: `Host: ${host}`,
      host,
      target: '/public/x',
      decision: 'denied_by_rule',
    })),
  },
  {
    id: 'CVE-2026-22817, CVE-2026-22818',
    product: 'Hono',
    hole: 'alg of the token selects the algorithm if the key names none',
    here: ['HS256', 'PS256', 'RS512', 'none', 'rs256'].map((alg) => ({
      name: `alg ${alg}`,
      token: { alg },
      decision: 'unsupported_alg',
    })),
  },
  {
    id: 'CVE-2026-44459',
    product: 'Hono',
    hole: 'exp, nbf and iat that are not finite numbers pass',
    here: (
      [
        ['exp', '"9999999999"', 'malformed_exp'],
        ['exp', 'null', 'malformed_exp'],
        ['exp', '1e400', 'malformed_exp'],
        ['exp', '{}', 'malformed_exp'],
        ['exp', '0', 'expired'],
        ['nbf', '"0"', 'malformed_nbf'],
        ['nbf', '[]', 'malformed_nbf'],
        ['iat', 'true', 'malformed_iat'],
        ['iat', '"0"', 'malformed_iat'],
      ] as const
    ).map(([claim, value, decision]) => ({
      name: `${claim}: ${value}`,
      token: {
        claims: { [claim]: 123456789 },
        sign: { edit: (json: string) => json.replace(`"${claim}":123456789`, `"${claim}":${value}`) },
      },
      decision,
    })),
  },
  {
    id: 'CVE-2025-62610',
    product: 'Hono',
    hole: 'aud is not checked unless the application does it',
    here: [undefined, 'https://other.example/', [], ''].map((aud) => ({
      name: `aud ${JSON.stringify(aud) ?? 'absent'}`,
      token: { claims: { aud } },
      decision: 'invalid_audience',
    })),
  },
  {
    id: 'GHSA-rp9m-7r4c-75qg (CVE-2026-35039)',
    product: 'fast-jwt',
    hole: 'a colliding cache key returns the claims of another token',
    here: ['alice', 'bob', 'alice', 'carol', 'bob'].map((sub, index) => ({
      name: `request ${index + 1}, of ${sub}`,
      token: { claims: { sub } },
      decision: 'admitted',
      arrives: { 'x-auth-subject': sub },
    })),
  },
  {
    id: 'CVE-2026-3635',
    product: 'Fastify',
    hole: 'X-Forwarded-Proto and -Host of a peer that is not trusted are read',
    here: [
      {
        name: 'X-Forwarded-Host: open.example',
        headers: ['X-Forwarded-Host', 'open.example'],
        decision: missing,
        beside: 'bad_forwarded_header',
      },
      {
        name: 'X-Forwarded-Proto: http',
        headers: ['X-Forwarded-Proto', 'http', 'X-Forwarded-Host', 'open.example'],
        token: { claims: { sub: 'alice' } },
        decision: 'admitted',
        beside: 'bad_forwarded_header',
        arrives: { host: 'api.example', 'x-forwarded-host': 'api.example' },
      },
    ],
  },
  {
    id: 'CVE-2019-9901',
    product: 'Envoy',
    hole: 'rules for a prefix, and a backend that resolves dot segments',
    here: ['/public/../closed/x', '/public/..', '/public/.'].map((target) => ({
      name: target,
      target,
      decision: 'ambiguous_path',
    })),
  },
];
