import type { RequestListener } from 'node:http';
import type { SettingLabels } from '../../explain/facts.ts';
import type { Connection } from '../../http/request.ts';
import type { Policy } from '../../policy/policy.ts';
import type { ResourceServer } from '../../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import type { Readiness } from '../admin/admin.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Log } from '../observation/log.ts';
import type { Settings } from '../settings/settings.ts';
import type { DecisionBatch, KeysView, RouteView } from './wire.ts';

/** What judged a request. */
export interface Judged {
  readonly server: ResourceServer<RegisteredClaims>;
  readonly policy: Policy<unknown> | undefined;
  readonly connection: Connection;
  /** Of a gate. */
  readonly rule?: { readonly id: string; readonly mode: 'enforce' | 'report' };
}

/** How decisions are watched. */
export interface DecisionWatchOptions {
  /** Finds what judged a request; `undefined` if no token was looked at. */
  readonly findJudged: (exchange: Exchange) => Judged | undefined;
  readonly labels: SettingLabels;
  readonly domainHasScheme: boolean;
}

/** Sends a batch, and calls back when it is taken: the next one waits for that. */
export type SendBatch = (batch: DecisionBatch, onTaken: () => void) => void;

/** Is told of each answered request. */
export type WatchDecision = (exchange: Exchange, status: number, milliseconds: number) => void;

/** Creates what watches the decisions of one process. */
export type CreateDecisionWatch = (options: DecisionWatchOptions) => WatchDecision;

/** The console of one service, in the process that listens for the operator. */
export interface OpenedConsole {
  /** Writes what it is given, and remembers it for the page. */
  readonly log: Log;
  /** For a service of one process. */
  readonly watchDecisions: CreateDecisionWatch;
  /** For the decisions of workers. */
  readonly take: (batch: DecisionBatch) => void;
  createListener(sources: StateSources): RequestListener;
  close(): Promise<void>;
}

/** What the page shows besides decisions. */
export interface StateSources {
  readonly command: { readonly name: 'serve' | 'gate' };
  readonly workers: number;
  readonly readiness: () => Readiness | Promise<Readiness>;
  readonly routes: () => readonly RouteView[];
  readonly keys: () => readonly KeysView[];
}

/** What it is opened with. */
export interface OpenConsoleOptions {
  readonly settings: Settings;
  readonly log: Log;
}

/** The console, of which nothing is loaded until it is opened. */
export interface ConsoleLoader {
  /** Opens the console of one service. Rejects with `StartFailure` if the file of the key cannot be written. */
  openConsole(options: OpenConsoleOptions): Promise<OpenedConsole>;
  /** Opens what a worker sends its decisions with. */
  openDecisionWatch(send: SendBatch): Promise<CreateDecisionWatch>;
}
