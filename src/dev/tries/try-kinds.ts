interface KindRow {
  readonly title: string;
  readonly text: string;
  /** Deviation of the token, and the flags of `portcullis token` for it. */
  readonly token?: { readonly validity?: 'expired'; readonly audience?: string; readonly issuer?: string };
  readonly flags?: string;
  /** Claims that the logout token names. */
  readonly logout?: readonly ('sub' | 'sid')[];
  readonly isBound?: true;
}

const rows = {
  none: { title: 'No token', text: 'No Authorization header' },
  good: { title: 'Valid token', text: 'Everything that the route requires' },
  expired: { title: 'Expired', text: 'Expired an hour ago', token: { validity: 'expired' }, flags: ' --expired' },
  wrong_audience: {
    ...{ title: 'Wrong audience', text: 'For another API' },
    ...{ token: { audience: 'https://another-api.example/' }, flags: ' --audience https://another-api.example/' },
  },
  wrong_issuer: {
    ...{ title: 'Wrong issuer', text: 'iss names another issuer' },
    ...{ token: { issuer: 'https://another-issuer.example/' }, flags: ' --issuer https://another-issuer.example/' },
  },
  missing_scope: { title: 'Missing scope', text: 'Valid, without scopes' },
  ended_session: {
    ...{ title: 'End this session', text: 'A logout between two requests with one token' },
    logout: ['sub', 'sid'],
  },
  revoked_user: {
    ...{ title: 'Revoke this user', text: 'All tokens of the user, between two requests' },
    logout: ['sub'],
  },
  dpop: { title: 'DPoP', text: 'Bound to a key, with a proof', isBound: true },
  dpop_nonce: { title: 'DPoP with nonce', text: 'Repeats the request with the nonce', isBound: true },
  replayed: { title: 'DPoP, replayed', text: 'Sends the same proof twice', isBound: true },
} as const satisfies Readonly<Record<string, KindRow>>;

export type TryKind = keyof typeof rows;
/** Kinds of a try. */
export const tryKinds: Readonly<Record<TryKind, KindRow>> = rows;

export const tryMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export interface TryOptions {
  readonly kind: TryKind;
  readonly method: string;
  readonly path: string;
  readonly scope: string;
  readonly permissions: readonly string[];
}

export interface TriedRequest {
  /** The request as a curl command, with shortened token and proof. */
  readonly sent: string;
  readonly requestId: string;
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

export type Tried = Readonly<{ requests: readonly TriedRequest[]; command: string; remark: string }>;
