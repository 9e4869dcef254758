/** One check of a call, as `explain` gives it. */
export interface CheckView {
  readonly id: string;
  readonly group: string;
  readonly verdict: 'pass' | 'fail' | 'follows' | 'blocked' | 'skipped' | 'unknown';
  readonly reason?: string;
  readonly expected?: string | readonly string[];
  readonly seen?: string;
  readonly verified?: boolean;
  readonly why?: string;
  readonly setting?: string;
  readonly causes?: readonly CauseView[];
  readonly fix?: string;
}

/** Why a check may have failed. */
export interface CauseView {
  readonly id: string;
  readonly certainty: 'certain' | 'likely';
  readonly fix: string;
  readonly or?: string;
  readonly note?: string;
}

/** Every check of a call, as `explain` gives it. */
export interface ExplanationView {
  readonly verdict: 'admitted' | 'refused' | 'undecided';
  readonly reason?: string;
  readonly checks: readonly CheckView[];
}

/** What became of one request. `other`: nobody judged it, as for a path that does not exist. */
export type Outcome = 'allowed' | 'refused' | 'would_refuse' | 'other';

/** One decision, as it is streamed: nothing of a token, a proof or their owner. */
export interface Decision {
  readonly id: string;
  /** The caller's own id, from X-Request-Id. */
  readonly requestId?: string;
  /** ISO 8601 in UTC. */
  readonly at: string;
  readonly method: string;
  /** Path of the route that matched, or id of the rule. */
  readonly route: string;
  readonly routeKind: 'route' | 'rule';
  readonly status: number;
  readonly outcome: Outcome;
  /** Why it was refused, or would have been. */
  readonly reason?: string;
  readonly scheme?: string;
  readonly ms: number;
}

/** What is kept of one decision besides what is streamed. */
export interface DecisionFacts {
  readonly id: string;
  /** What the log says of the refusal: names and texts. */
  readonly facts: readonly (readonly [string, string])[];
  /** Every check; absent if no checks can be walked. */
  readonly explanation?: ExplanationView;
}

/** Decisions that came within one moment. */
export interface DecisionBatch {
  readonly decisions: readonly Decision[];
  readonly facts: readonly DecisionFacts[];
  /** Decisions that were left out, since there were too many. */
  readonly dropped: number;
}

/** What is streamed. */
export interface StreamedDecisions {
  readonly decisions: readonly Decision[];
  readonly dropped: number;
}

/** One decision with everything that is known of it. */
export interface DecisionDetail {
  readonly decision: Decision;
  /** Whether its checks were walked, as far as there are any. */
  readonly walked: boolean;
  readonly facts: readonly (readonly [string, string])[];
  readonly explanation?: ExplanationView;
  /** Of a refusal: what the client was told, and what to do. */
  readonly refusal?: { readonly description: string; readonly fix: string };
}

/** One route or rule that is in force. */
export interface RouteView {
  readonly id: string;
  readonly kind: 'route' | 'rule';
  readonly path: string;
  /** Empty: any. */
  readonly hosts: readonly string[];
  /** Empty: any. */
  readonly methods: readonly string[];
  readonly access: 'open' | 'token' | 'optional' | 'deny';
  readonly mode: 'enforce' | 'report';
  /** What a token must have, a text each. */
  readonly needs: readonly string[];
  /** Scopes and permissions that a good token for it has. */
  readonly scope: string;
  readonly permissions: readonly string[];
}

/** The keys of one issuer. */
export interface KeysView {
  readonly issuer: string;
  readonly usable: boolean;
  readonly ids: readonly string[];
  readonly ageSeconds?: number;
  readonly problem?: string;
}

/** Something that happened to the service: a reload, a fetch of keys. */
export interface Note {
  readonly at: string;
  readonly level: 'info' | 'warn' | 'error';
  readonly event: string;
  readonly text: string;
}

/** The service as it is now. */
export interface ConsoleState {
  readonly command: 'serve' | 'gate';
  readonly version: string;
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, string>>;
  readonly workers: number;
  readonly settings: readonly (readonly [string, string])[];
  readonly routes: readonly RouteView[];
  readonly keys: readonly KeysView[];
  readonly notes: readonly Note[];
  /** Whether calls can be tried: only in `dev`. */
  readonly tries: boolean;
}
