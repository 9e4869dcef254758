import type { Reason } from '../../failures.ts';

/** What the line of one request says. Texts besides `method` and `facts` hold nothing that must be escaped. */
export interface RequestLine {
  /** When it was answered: milliseconds since the epoch. */
  readonly time: number;
  readonly id: string;
  /** The caller's own id, from X-Request-Id. */
  readonly requestId: string | undefined;
  readonly traceId: string | undefined;
  readonly clientIp: string | undefined;
  readonly method: string;
  readonly route: string;
  readonly routeKind: 'route' | 'rule';
  readonly status: number;
  readonly reason: Reason | undefined;
  readonly wouldRefuse: Reason | undefined;
  readonly milliseconds: number;
  /** The rest: whose call it was, what was expected and received, the cause. */
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}
