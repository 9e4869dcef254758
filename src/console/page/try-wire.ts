/** Tokens that a call can be tried with. */
export const tryKinds = [
  'none',
  'good',
  'expired',
  'wrong_audience',
  'wrong_issuer',
  'missing_scope',
  'dpop',
  'dpop_nonce',
  'replayed',
] as const;
export type TryKind = (typeof tryKinds)[number];

/** A call to be tried. */
export interface TryOrder {
  readonly kind: TryKind;
  readonly method: string;
  readonly path: string;
  /** Scopes and permissions of a good token. */
  readonly scope: string;
  readonly permissions: readonly string[];
}

/** One call that was sent, and its answer. */
export interface TriedCall {
  /** The request as a curl command, with the token and the proof shortened. */
  readonly sent: string;
  /** Finds the decision about it. */
  readonly requestId: string;
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

/** What came of a try: one call, or more where the first is only the beginning. */
export interface TryResult {
  readonly calls: readonly TriedCall[];
  /** A command that repeats it in a terminal, with a token of its own. */
  readonly command: string;
  /** What a reader should know; empty if there is nothing. */
  readonly remark: string;
  /** Why it could not be tried. */
  readonly problem?: string;
}
