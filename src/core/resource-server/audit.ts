import type { JsonObject } from '../jose/json.ts';

/** One decision on a request. Absent facts are omitted from the line. */
export interface AuditDecision {
  /** Id of the decision, `id` of the line. */
  readonly id: string;
  /** Value of X-Request-Id. */
  readonly requestId?: string | undefined;
  /** Trace id of `traceparent`. */
  readonly traceId?: string | undefined;
  /** Outcome. */
  readonly decision: 'admitted' | 'refused' | 'would_refuse';
  /** Reason of a refusal. */
  readonly reason?: string | undefined;
  /** HTTP method. */
  readonly method: string;
  /** Declared path of the route. */
  readonly route?: string | undefined;
  /** Id of the rule. */
  readonly rule?: string | undefined;
  /** Host that the client called. */
  readonly host?: string | undefined;
  /** Path of the request, without its query. */
  readonly path?: string | undefined;
  /** HTTP status of a refusal. */
  readonly status?: number | undefined;
  /** Claims of a token whose signature was verified. Only `iss`, `sub`, the client, `act`, `cnf.jkt` and `jti` are used. */
  readonly claims?: JsonObject | undefined;
  /** Name of the entry of `issuers` in the rules that the token belongs to. */
  readonly entry?: string | undefined;
  /** Scopes of the token. Default: its `scope`. */
  readonly scopes?: ReadonlySet<string> | undefined;
  /** Scheme of the credentials. */
  readonly scheme?: string | undefined;
  /** SHA-256 of the active rules, hex. */
  readonly rules?: string | undefined;
  /** Address of the client. */
  readonly clientIp?: string | undefined;
}

/** A trail of decisions: one JSON line each. */
export interface Audit {
  /** False from the first failed write until one succeeds, if `full` is `block`. */
  isAvailable(): boolean;
  /** Writes the line of a decision before it returns. */
  record(decision: AuditDecision): void;
  /** Adds the line of a decision. {@link Audit.write} writes it. */
  add(decision: AuditDecision): void;
  /** Writes the added lines. */
  write(): void;
  /** Opens the file again, for a rotation, and tries to write. Throws the error of the system; the old file then stays. */
  reopen(): void;
  /** Replaces the secret of hashes. */
  useSecret(secret: string): void;
  /** Number of lost lines. */
  dropped(): number;
  /** Writes the last lines and closes the file. Returns the number of lines that were lost. */
  close(): number;
}
