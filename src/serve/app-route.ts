import type { AccessError } from '../failures.ts';
import type { DpopMode } from '../http/credentials.ts';
import type { ReadExternalUrl } from '../http/external-url.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { ResourceServer } from '../resource-server/resource-server.ts';
import type { Answer, HeaderList } from '../server/http/answer.ts';
import type { Exchange } from '../server/http/exchange.ts';
import type { Route } from '../server/http/router.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import type { FindFlows } from './docs/provider-flows.ts';

/** What the app is made of. */
export interface AppOptions {
  readonly settings: Pick<
    Settings,
    'variant' | 'audience' | 'customClaim' | 'docs' | 'corsOrigins' | 'errorBody' | 'dpopAlgorithms' | 'issuer'
  >;
  readonly mode: DpopMode;
  readonly resourceServer: ResourceServer<RegisteredClaims>;
  readonly readExternalUrl: ReadExternalUrl;
  readonly version: string;
  /** Default: nothing is known of them. */
  readonly findFlows?: FindFlows;
}

/** Answers one route. */
export type Respond = (exchange: Exchange) => MaybePromise<Answer | AccessError>;

/** A route of the service. */
export interface AppRoute extends Route {
  readonly respond: Respond;
}

/** Headers of a JSON answer. */
export const json: HeaderList = ['content-type', 'application/json'];
