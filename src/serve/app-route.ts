import type { DpopMode } from '../http/credentials.ts';
import type { ReadExternalUrl } from '../http/external-url.ts';
import type { Refused } from '../refused.ts';
import type { ResourceServer } from '../resource-server/resource-server.ts';
import type { Answer, HeaderList } from '../server/http/answer.ts';
import type { Exchange, Route } from '../server/http/exchange.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import type { FindFlows } from './docs/provider-flows.ts';

/** The local provider of `portcullis dev`. */
export interface LocalTokens {
  /** URL of the admin listener, which has the console. */
  readonly admin: string | undefined;
  token(options: { readonly scope: string; readonly jkt?: string }): Promise<string>;
}

export type FindLocalTokens = (issuer: string) => Promise<LocalTokens | undefined>;

export interface AppOptions {
  readonly settings: Pick<
    Settings,
    'variant' | 'audience' | 'customClaim' | 'docs' | 'corsOrigins' | 'errorBody' | 'dpopAlgorithms' | 'issuer'
  >;
  readonly mode: DpopMode;
  readonly resourceServer: ResourceServer<RegisteredClaims>;
  readonly readExternalUrl: ReadExternalUrl;
  readonly version: string;
  /** Default: unknown flows. */
  readonly findFlows?: FindFlows;
  /** Default: no local provider. */
  readonly findLocalTokens?: FindLocalTokens | undefined;
}

export type Respond = (exchange: Exchange) => Answer | Refused | Promise<Answer>;

export interface AppRoute extends Route {
  readonly respond: Respond;
}

export const json: HeaderList = ['content-type', 'application/json'];
