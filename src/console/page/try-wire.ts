export const tryKinds = [
  'none',
  'good',
  'expired',
  'wrong_audience',
  'wrong_issuer',
  'missing_scope',
  'ended_session',
  'revoked_user',
  'dpop',
  'dpop_nonce',
  'replayed',
] as const;
export type TryKind = (typeof tryKinds)[number];

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

export interface TryResult {
  readonly requests: readonly TriedRequest[];
  readonly command: string;
  readonly remark: string;
  /** Present if nothing was sent. */
  readonly problem?: string;
}
