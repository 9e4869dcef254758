import type { Explanation } from '../../explain/explanation.ts';

/** Outcome of one request. `other`: it was not authorized, as for an unknown path. */
export type Outcome = 'allowed' | 'refused' | 'would_refuse' | 'other';

/** One decision. It has no part of a token, a proof or their subject. */
export interface Decision {
  readonly id: string;
  /** Value of X-Request-Id. */
  readonly requestId?: string;
  /** ISO 8601 in UTC. */
  readonly at: string;
  readonly method: string;
  /** Path of the matching route, or id of the rule. */
  readonly route: string;
  readonly routeKind: 'route' | 'rule';
  /** Path without its query, if no route or rule matched. */
  readonly path?: string;
  readonly status: number;
  readonly outcome: Outcome;
  readonly reason?: string;
  readonly scheme?: string;
  readonly ms: number;
}

export type StreamedDecisions = Readonly<{ decisions: readonly Decision[]; dropped: number }>;

export interface DecisionDetail {
  readonly decision: Decision;
  /** True if its checks were evaluated. */
  readonly walked: boolean;
  readonly facts: readonly (readonly [string, string])[];
  readonly explanation?: Explanation;
  readonly refusal?: { readonly description: string; readonly fix: string; readonly docs: string };
}

export interface RouteView {
  readonly id: string;
  readonly kind: 'route' | 'rule';
  readonly path: string;
  /** Empty if any host matches. */
  readonly hosts: readonly string[];
  /** Empty if any method matches. */
  readonly methods: readonly string[];
  readonly access: 'open' | 'token' | 'optional' | 'deny';
  readonly mode: 'enforce' | 'report';
  readonly needs: readonly string[];
  readonly scope: string;
  readonly permissions: readonly string[];
}

export interface KeysView {
  readonly issuer: string;
  readonly usable: boolean;
  readonly ids: readonly string[];
  readonly ageSeconds?: number;
  readonly problem?: string;
}

export interface PastedRequest {
  /** Method and path. */
  readonly request?: string;
  readonly repairs?: readonly string[];
  /** Present if the path needs no token. */
  readonly route?: 'open';
  /** Present if the request cannot be explained. */
  readonly problem?: string;
  readonly explanation?: Explanation;
}

/** Explanations of pasted text, the refused requests first. A problem if it has no token and no request. */
export type PasteResult = { readonly problem: string } | { readonly requests: readonly PastedRequest[] };

/** An event of the service, such as a reload or a fetch of keys. */
export type Note = Readonly<{ at: string; level: 'info' | 'warn' | 'error'; event: string; text: string }>;

export interface ConsoleState {
  readonly command: 'serve' | 'gate';
  readonly keyFile: string;
  readonly version: string;
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, string>>;
  readonly settings: readonly (readonly [string, string])[];
  readonly routes: readonly RouteView[];
  readonly keys: readonly KeysView[];
  readonly notes: readonly Note[];
}
