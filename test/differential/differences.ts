import type { Reason } from '../../src/core/failures.ts';

/** A verifier that is compared with. */
export type Peer = 'jose' | 'oauth4webapi' | 'express-oauth2-jwt-bearer';

type Members = Readonly<Record<string, unknown>>;

/** Tokens that are refused here, and by which peers some of them are accepted. */
export interface Stricter {
  readonly peers: readonly Peer[];
  readonly why: string;
  readonly source: string;
}

/** Tokens that are accepted here, and refused by a peer. */
export interface Looser {
  readonly name: string;
  readonly peer: Peer;
  readonly why: string;
  readonly source: string;
  /** Reports whether a token belongs to this class. */
  readonly applies: (header: Members, claims: Members) => boolean;
}

const all: readonly Peer[] = ['jose', 'oauth4webapi', 'express-oauth2-jwt-bearer'];
const [jose, , express] = ['jose', 'oauth4webapi', 'express-oauth2-jwt-bearer'] as const;

/** Every disagreement in which this project is the stricter one, by its reason. */
export const stricter: Readonly<Partial<Record<Reason, Stricter>>> = {
  token_too_large: { peers: all, why: 'Work is bounded before any of it is done.', source: 'own limit, RFC 9110 §5.4' },
  malformed_encoding: {
    peers: all,
    why: 'One token has one spelling: no padding, white space, foreign alphabet or stray bits.',
    source: 'RFC 7515 §2, RFC 4648 §3.5',
  },
  malformed_header: {
    peers: all,
    why: 'Members twice, byte order marks, bad UTF-8 and deep nesting are read differently by different readers.',
    source: 'RFC 7515 §4, RFC 8259 §8.1, RFC 8725 §2.4',
  },
  malformed_claims: { peers: all, why: 'As for the header.', source: 'RFC 7519 §4, RFC 8259 §8.1' },
  unsupported_typ: {
    peers: [jose, express],
    why: 'A token of another kind is not an access token. These peers ignore `typ` unless they are configured with one type.',
    source: 'RFC 8725 §3.11, RFC 9068 §4',
  },
  unsupported_header: {
    peers: all,
    why: '`b64` and `zip` change what was signed; no access token needs them.',
    source: 'RFC 7797 §7, RFC 8725 §3.6',
  },
  missing_kid: {
    peers: all,
    why: 'A key is used because the token names it, not because there is only one.',
    source: 'own rule; RFC 7515 §4.1.4 leaves it open',
  },
  malformed_kid: {
    peers: [express],
    why: 'A `kid` that is not a string is treated as absent by the peer.',
    source: 'RFC 7515 §4.1.4',
  },
  invalid_audience: {
    peers: all,
    why: 'Each element of `aud` must be a string; an array with any other element is malformed.',
    source: 'RFC 7519 §4.1.3',
  },
  malformed_exp: { peers: all, why: '`1e400` is infinite: the token would never expire.', source: 'RFC 7519 §2' },
  malformed_nbf: { peers: all, why: 'Times are numbers from 0 to 10^11.', source: 'RFC 7519 §2' },
  missing_iat: { peers: [express], why: '`iat` is required in an access token.', source: 'RFC 9068 §2.2' },
  malformed_iat: { peers: all, why: 'Times are numbers from 0 to 10^11.', source: 'RFC 7519 §2' },
  issued_in_future: {
    peers: all,
    why: 'A token from the future says that a clock, or the token, is wrong.',
    source: 'own rule; RFC 7519 §4.1.6 leaves it open',
  },
  malformed_sub: { peers: all, why: '`sub` is required and must be a string.', source: 'RFC 9068 §2.2' },
  malformed_scope: { peers: all, why: '`scope` is a string of names separated by spaces.', source: 'RFC 9068 §2.2.3' },
  malformed_cnf: {
    peers: [jose, express],
    why: 'A binding that cannot be read cannot be confirmed.',
    source: 'RFC 7800 §3.1',
  },
  unsupported_cnf: {
    peers: all,
    why: 'A token that is bound in another way, or has an empty `cnf`, is not unbound.',
    source: 'RFC 7800 §3.1',
  },
  bound_token_as_bearer: {
    peers: [jose, express],
    why: 'A bound token without its proof may be stolen; here DPoP is off in the one peer, and unknown to the other.',
    source: 'RFC 9449 §7.2',
  },
};

const isText = (value: unknown): boolean => typeof value === 'string';

/** Every disagreement in which a peer is the stricter one. With `jose` there is none. */
export const looser: readonly Looser[] = [
  {
    name: '`typ` absent or `JWT`',
    peer: 'oauth4webapi',
    why: 'Providers that are older than RFC 9068 issue these; audience and issuer still tell access tokens apart.',
    source: 'RFC 7519 §5.1; RFC 9068 §4 would refuse them',
    applies: ({ typ }) => typ === undefined || String(typ).toLowerCase() === 'jwt',
  },
  {
    name: '`client_id` or `jti` absent, or not a string',
    peer: 'oauth4webapi',
    why: 'Nothing is decided by them, unless `profile` requires them as strings.',
    source: 'RFC 9068 §2.2 requires them of the issuer',
    applies: (_, { client_id: client, jti }) => !isText(client) || !isText(jti),
  },
  {
    name: '`client_id` or `jti` present, and not a string',
    peer: 'express-oauth2-jwt-bearer',
    why: 'Nothing is decided by them, unless `profile` requires them as strings.',
    source: 'RFC 9068 §2.2 requires them of the issuer',
    applies: (_, { client_id: client, jti }) =>
      (client !== undefined && !isText(client)) || (jti !== undefined && !isText(jti)),
  },
];

/** The classes as a table in Markdown. */
export function differenceTable(): string {
  const rows = [
    ...Object.entries(stricter).map(([reason, { peers, why, source }]) => [
      `refused: \`${reason}\``,
      peers,
      why,
      source,
    ]),
    ...looser.map(({ name, peer, why, source }) => [`accepted: ${name}`, [peer], why, source]),
  ] as const;
  return [
    '| here | otherwise in | why | source |',
    '| --- | --- | --- | --- |',
    ...rows.map(([here, peers, why, source]) => `| ${here} | ${[...(peers ?? [])].join(', ')} | ${why} | ${source} |`),
  ].join('\n');
}
