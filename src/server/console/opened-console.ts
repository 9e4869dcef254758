import type { RequestListener } from 'node:http';
import type { Reason } from '../../core/failures.ts';
import type { Connection, ResourceRequest } from '../../core/http/request.ts';
import type { Policy } from '../../core/policy/policy.ts';
import type { ResourceServer } from '../../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import type { Explanation } from '../../explain/explanation.ts';
import type { InForce } from '../../explain/facts.ts';
import type { ReceivedCall } from '../../explain/input/explained-call.ts';
import type { Readiness } from '../admin/admin.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Log } from '../observation/log.ts';
import type { Settings } from '../settings/settings.ts';
import type { KeysView, RouteView } from './wire.ts';

export interface Authorizer {
  readonly server: ResourceServer<RegisteredClaims>;
  readonly policy: Policy<unknown> | undefined;
  readonly connection: Connection;
  /** Absent for a route. */
  readonly rule?: { readonly id: string; readonly mode: 'enforce' | 'report' };
  /** The request as its rule reads it. Default: the pasted request. */
  readonly request?: ResourceRequest;
  /** Explains a pasted request by its rule. `explainBy` explains it by a policy. Absent for a route. */
  explainByRule?(
    call: ReceivedCall,
    explainBy: (policy: Policy<unknown>) => Promise<Explanation>,
  ): Promise<Explanation>;
}

export interface DecisionWatchOptions extends Pick<InForce, 'labels' | 'domainHasScheme' | 'disguise'> {
  /** Returns `open` for a route without a token, the reason if rules refuse, the status without a route, `undefined` if no token was read. */
  readonly findAuthorizer: (
    exchange: Exchange,
    /** A pasted request that was copied unchanged. */
    copied?: ReceivedCall,
  ) => Authorizer | 'open' | Reason | 400 | 404 | 405 | 417 | 431 | undefined;
  /** Validates a token without a route; absent if only rules say how. */
  readonly server?: ResourceServer<RegisteredClaims>;
}

export type CreateDecisionWatch = (
  options: DecisionWatchOptions,
) => (exchange: Exchange, status: number, milliseconds: number) => void;

export interface OpenedConsole {
  /** Writes lines, and records them for the page. */
  readonly log: Log;
  readonly watchDecisions: CreateDecisionWatch;
  createListener(sources: StateSources): RequestListener;
  close(): Promise<void>;
}

export interface StateSources {
  readonly command: { readonly name: 'serve' | 'gate' };
  readonly readiness: () => Readiness;
  readonly routes: () => readonly RouteView[];
  readonly keys: () => readonly KeysView[];
}

/** Sends the request that a JSON text describes. Resolves with `undefined` if the text is not valid. */
export type RunTry = (body: string) => Promise<object | undefined>;

/** Opens the console of one service. Rejects with `StartFailure` if the file of the key cannot be written. */
export type OpenConsole = (options: { readonly settings: Settings; readonly log: Log }) => Promise<OpenedConsole>;
