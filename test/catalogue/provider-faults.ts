import { gzipSync } from 'node:zlib';
import type { Reason } from '../../src/core/failures.ts';
import { respondWith } from '../support/raw-provider.ts';

/** Fault in one of the two documents of a provider, or in both. */
export interface ProviderFault {
  /** The faulty document. Default: both. */
  readonly part?: 'metadata' | 'keys';
  /** Bytes instead of the response; `undefined` sends none. */
  readonly send?: (document: string) => Buffer | string | undefined;
  /** Members that are laid over the document. */
  readonly members?: object;
  readonly after?: 'end' | 'lose';
  /** Default: a trusted certificate. `none`: plain HTTP. */
  readonly certificate?: 'expired' | 'untrusted' | 'none';
  /** Host in the issuer, instead of localhost. */
  readonly host?: string;
  /** True if no provider listens. */
  readonly isDown?: true;
  /** Status that a proxy responds to CONNECT with. */
  readonly connect?: number;
}

/** The cause that a line names, and its fix. */
export type Told = readonly [message: RegExp, fix: RegExp];

/** One fault of a provider; a valid token must then get 503, not a wrong decision. */
export interface ProviderCase {
  readonly name: string;
  readonly attack: string;
  readonly source: string;
  readonly status: number;
  readonly reason: Reason;
  readonly fault: ProviderFault;
  /** `undefined` without a proxy if only the proxy is at fault. */
  readonly told: Told | undefined;
  /** With a proxy. */
  readonly toldThrough: Told | undefined;
}

const status = (code: number) => () => `HTTP/1.1 ${code} x\r\ncontent-length: 2\r\n\r\nno`;
const content = (text: string, ...headers: readonly string[]) => ({ send: () => respondWith(text, ...headers) });
const key = (members: object) =>
  ({ part: 'keys', members: { keys: [{ kid: 'a', kty: 'oct', k: 'AA', ...members }] } }) as const;

const address = /^Compare (?:the address|IDP|"issuer")/i;
const unreachedByProxy: Told = [/outbound proxy did not reach/, /DNS and routes of the proxy/];

type Row = readonly [name: string, source: string, fault: ProviderFault, told: Told | undefined, toldThrough?: Told];
const rows: Readonly<Record<string, readonly Row[]>> = {
  'key set from elsewhere': [
    [
      'jwks_uri with http',
      'RFC 8414 §3.3',
      { part: 'metadata', members: { jwks_uri: 'http://localhost/jwks' } },
      [/no jwks_uri that is an https URL/, /over https/],
    ],
    [
      'issuer of another',
      'RFC 8414 §3.3',
      { part: 'metadata', members: { issuer: 'https://idp.internal/' } },
      [
        /names another issuer.*\(https:\/\/idp\.internal\/ instead of https:\/\/localhost:\d+\/\)/,
        /exactly as the provider/,
      ],
    ],
    [
      'redirect of the key set',
      'RFC 8725 §3.10',
      {
        part: 'keys',
        send: () => 'HTTP/1.1 302 x\r\nlocation: https://u:p@a.example/x?y=z\r\ncontent-length: 0\r\n\r\n',
      },
      [/a redirect, .*\(302 to https:\/\/\*\*\*@a\.example\/x\?\*\*\*\)/, /address that the redirect leads to/],
    ],
    [
      'redirect of both documents',
      'RFC 8725 §3.10',
      { send: () => 'HTTP/1.1 301 x\r\ncontent-length: 0\r\n\r\n' },
      [/a redirect, .*\(301\)/, /address that the redirect leads to/],
    ],
  ],
  'key set that is too much': [
    ['more than 256 KiB', 'CWE-400', { part: 'keys', ...content(' '.repeat(262_145)) }, [/too large/, address]],
    [
      '101 keys',
      'CWE-400',
      { part: 'keys', members: { keys: Array.from({ length: 101 }, () => ({})) } },
      [/more than 100 keys.*\(101\)/, /only the keys that it uses/],
    ],
    [
      'gzip that unpacks to more than 256 KiB',
      'CWE-409',
      { send: () => respondWith(gzipSync(' '.repeat(1e6)), 'content-encoding: gzip') },
      [/too large/, address],
    ],
  ],
  'provider that is slow': [
    ['no response', 'CWE-400', { send: () => undefined }, [/did not respond in time\.$/, /network and the firewall/]],
    [
      'a body that stalls',
      'CWE-400',
      { send: () => 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"keys"' },
      [/began a response and did not complete it in time\. \(7 bytes\)/, /hold back large responses/],
    ],
  ],
  'provider that is not reached': [
    [
      'port closed',
      'RFC 9110 §15.6.3',
      { isDown: true },
      [/accepts no connection.*ECONNREFUSED/, /Correct host and port/],
      unreachedByProxy,
    ],
    [
      'name that does not exist',
      'RFC 6761 §6.4',
      { host: 'idp.invalid' },
      [/name .* cannot be resolved.*\((?:ENOTFOUND|EAI_AGAIN)\)/, /DNS on this host/],
      unreachedByProxy,
    ],
    [
      'connection closed',
      'RFC 9112 §9.5',
      { send: () => '', after: 'end' },
      [/connection closed before the response.*ECONNRESET/, /log of the provider/],
    ],
    [
      'connection closed within the body',
      'RFC 9112 §8',
      { send: () => 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{', after: 'end' },
      [/connection closed before the response.*ECONNRESET/, /log of the provider/],
    ],
    [
      'another protocol than HTTP',
      'RFC 9112 §2.2',
      { send: () => 'SSH-2.0-OpenSSH_9.2\r\n' },
      [/is not HTTP\/1\.1\. \(HPE_/, /another protocol/],
    ],
    [
      'proxy that wants credentials',
      'RFC 9110 §15.5.8',
      { connect: 407 },
      undefined,
      [/proxy requires other credentials/, /user and password/],
    ],
    [
      'proxy that forbids',
      'RFC 9110 §15.5.4',
      { connect: 403 },
      undefined,
      [/proxy refuses connections.*\(403\)/, /NO_PROXY/],
    ],
  ],
  'certificate that does not fit': [
    [
      'expired',
      'RFC 5280 §4.1.2.5',
      { certificate: 'expired' },
      [/has expired/, /Renew the certificate|clock of this host/],
    ],
    [
      'another name',
      'RFC 9525 §6',
      { host: '127.0.0.2' },
      [/is for (?:another name|localhost)/, /name that the certificate|Correct/],
    ],
    [
      'unknown authority',
      'RFC 5280 §6.1',
      { certificate: 'untrusted' },
      [/does not trust|not trusted/, /NODE_EXTRA_CA_CERTS=/],
    ],
    [
      'none, plain HTTP',
      'RFC 8446 §4.1.3',
      { certificate: 'none' },
      [/does not speak TLS|speaks plain HTTP/, /HTTPS port/],
    ],
  ],
  'invalid key set': [
    [
      'a page in HTML',
      'RFC 7517 §5',
      content('<html>', 'content-type: text/html'),
      [/a page of HTML\. \(text\/html\)/, /login, a proxy, a firewall/],
    ],
    ['not JSON', 'RFC 8259 §2', content('keys: []'), [/not one JSON object/, address]],
    ['empty body', 'RFC 8259 §2', content(''), [/is empty\. \(0 bytes\)/, /by curl/]],
    [
      'two byte order marks',
      'RFC 8259 §8.1',
      { send: (document) => respondWith(`\ufeff\ufeff${document}`) },
      [/not one JSON object/, address],
    ],
    [
      'another coding than gzip',
      'RFC 9110 §8.4',
      content('x', 'content-encoding: br'),
      [/not gzip.*\(br\)/, /compress by gzip or not at all/],
    ],
    [
      'gzip that is cut off',
      'RFC 9110 §8.4',
      { send: (document) => respondWith(gzipSync(document).subarray(0, -9), 'content-encoding: gzip') },
      [/broken gzip\. \(gzip\)/, /compress by gzip/],
    ],
    ['status 404', 'RFC 9110 §15.5.5', { send: status(404) }, [/has nothing at this address\. \(404\)/, address]],
    ['status 403', 'RFC 9110 §15.5.4', { send: status(403) }, [/refuses the request\. \(403\)/, /firewall/]],
    [
      'status 429',
      'RFC 6585 §4',
      { send: status(429) },
      [/limits requests\. \(429\)/, /other clients with this address/],
    ],
    ['status 500', 'RFC 9110 §15.6.1', { send: status(500) }, [/provider fails\. \(500\)/, /status page or its log/]],
    ['login of a network', 'RFC 6585 §6', { send: status(511) }, [/requires a login\. \(511\)/, /exempt this host/]],
    ['no array of keys', 'RFC 7517 §5', { part: 'keys', members: { keys: {} } }, [/no array of keys/, address]],
    [
      'no key',
      'RFC 7517 §5',
      { part: 'keys', members: { keys: [] } },
      [/no key that can verify.*\(empty\)/, /Publish a key/],
    ],
    [
      'no usable key left',
      'RFC 7517 §5',
      key({}),
      [/no key that can verify.*\(a is not used: symmetric \(kty\)\)/, /Publish a key/],
    ],
    ['no key with a kid', 'RFC 7517 §4.5', key({ kid: 7 }), [/\(without kid is not used/, /Publish a key/]],
  ],
};

/** Attacks by a provider, or by an attacker who impersonates it, and its defects. */
export const providerFaults: readonly ProviderCase[] = Object.entries(rows).flatMap(([attack, list]) =>
  list.map(([name, source, fault, told, toldThrough = told]) => ({
    ...{ name, attack, source, status: 503, reason: 'keys_unavailable' as const, fault, told, toldThrough },
  })),
);

/** Providers whose responses are unusual, and are read. */
export const unusualProviders: Readonly<Record<string, ProviderFault>> = {
  'a wrong type': { send: (document) => respondWith(document, 'content-type: text/html') },
  'a byte order mark': { send: (document) => respondWith(`\ufeff${document}`) },
  'HTTP/1.0': { send: (document) => `HTTP/1.0 200 OK\r\n\r\n${document}`, after: 'end' },
  chunks: {
    send: (document) =>
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n${(document.length - 1).toString(16)}\r\n${document.slice(1)}\r\n0\r\n\r\n`,
  },
  gzip: { send: (document) => respondWith(gzipSync(document), 'content-encoding: gzip') },
  'a close that was not announced': { after: 'end' },
  'a connection that is lost before its second request': { after: 'lose' },
};
