import type { DpopMode } from '../core/http/credentials.ts';
import type { ReadExternalUrl } from '../core/http/external-url.ts';
import type { Refused } from '../core/refused.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import type { Answer, Exchange, HeaderList, Route } from '../server/http/exchange.ts';
import type { Settings } from '../server/settings/settings.ts';

export interface AppOptions {
  readonly settings: Settings;
  readonly mode: DpopMode;
  readonly resourceServer: ResourceServer<RegisteredClaims>;
  readonly readExternalUrl: ReadExternalUrl;
  readonly version: string;
}

export type Respond = (exchange: Exchange) => Answer | Refused | Promise<Answer>;

export interface AppRoute extends Route {
  readonly respond: Respond;
}

export const json: HeaderList = ['content-type', 'application/json'];
