import type { Reason } from '../../failures.ts';

/** The line of one request. Only `method` and `facts` may need escaping. */
export interface RequestLine {
  /** Time of the response: milliseconds since the epoch. */
  readonly time: number;
  readonly id: string;
  /** Value of X-Request-Id. */
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
  /** The client, expected and received values, the cause. */
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}
