import type { Credentials } from '../http/credentials.ts';
import type { ExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { JsonObject } from '../jose/json.ts';
import type { KeySet } from '../keys/key-set.ts';
import type { KeptRules } from '../resource-server/kept-rules.ts';
import type { IssuerRules } from '../token/access-token.ts';
import type { CheckedPolicy } from '../token/token-policy.ts';

/** One call and what it is tried against. */
export interface DryRunOptions {
  readonly rules: KeptRules;
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
  readonly policy: CheckedPolicy;
  /** Seconds since the epoch. */
  readonly now: number;
  /** Stand in for the keys of every issuer. */
  readonly keys: KeySet | undefined;
}

/** What was read on the way; `undefined` for what could not be. */
export interface Sight {
  readonly url: ExternalUrl | undefined;
  readonly credentials: Credentials | undefined;
  readonly header: JsonObject | undefined;
  readonly claims: JsonObject | undefined;
  /** The issuer that the token names if it is trusted, or else the only one that is. */
  readonly issuer: IssuerRules | undefined;
  /** Everybody who is trusted for this request. */
  readonly trusted: readonly IssuerRules[];
  readonly proof: { readonly header: JsonObject; readonly claims: JsonObject } | undefined;
  readonly isVerified: boolean;
}
