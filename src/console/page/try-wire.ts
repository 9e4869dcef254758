/** Kinds of a try, each with its title and description. */
export const tryKinds = {
  none: ['No token', 'No Authorization header'],
  good: ['Valid token', 'Everything that the route requires'],
  expired: ['Expired', 'Expired an hour ago'],
  wrong_audience: ['Wrong audience', 'For another API'],
  wrong_issuer: ['Wrong issuer', 'iss names another issuer'],
  missing_scope: ['Missing scope', 'Valid, without scopes'],
  ended_session: ['End this session', 'A logout between two requests with one token'],
  revoked_user: ['Revoke this user', 'All tokens of the user, between two requests'],
  dpop: ['DPoP', 'Bound to a key, with a proof'],
  dpop_nonce: ['DPoP with nonce', 'Repeats the request with the nonce'],
  replayed: ['DPoP, replayed', 'Sends the same proof twice'],
} as const;
export type TryKind = keyof typeof tryKinds;

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

export interface Tried {
  readonly requests: readonly TriedRequest[];
  readonly command: string;
  readonly remark: string;
}

/** A problem if nothing was sent. */
export type TryResult = Tried | { readonly problem: string };
