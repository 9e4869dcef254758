import type { ExchangeTarget, TokenExchangeOptions } from '../../core/exchange/exchange-request.ts';
import type { DpopMode } from '../../core/http/credentials.ts';
import type { IntrospectionOptions } from '../../core/introspection/introspection.ts';
import type { OperationPolicies } from '../../core/mcp/operation-policy.ts';
import type { PlainPolicy } from '../../core/policy/policy.ts';
import type { TrustedIssuer } from '../../core/resource-server/issuers/trusted-issuer.ts';
import type { ClaimPath } from '../../core/token/grants.ts';
import type { GateCors } from './cors.ts';
import type { RequestHost } from './request-target.ts';
import type { RulePattern } from './rule-pattern.ts';

export interface AssertionRules {
  readonly issuer: string;
  readonly header: string;
  /** Seconds. */
  readonly lifetime: number;
  readonly claims: readonly string[];
}

export interface RuleAssertion {
  readonly audience: string;
  /** True if each assertion is bound to its request. */
  readonly isBound: boolean;
}

export interface RuleMcp {
  readonly policies: OperationPolicies;
  /** True beside a proxy: the upstream compares the headers with the body. */
  readonly trustsHeaders: boolean;
}

/** The condition of a rule, which its policy evaluates. */
export interface RuleCondition {
  readonly text: string;
  /** Returns the values that path and hosts bind; `undefined` if the condition reads only the token. */
  readonly bind: ((hostName: string, segments: readonly string[]) => ReadonlyMap<string, string>) | undefined;
}

/** Fix for `trustHeaders` in rules of the gate as the proxy. */
export const trustFix = 'As the proxy, the gate reads the body. Remove "trustHeaders".';

export interface Rule {
  readonly id: string;
  readonly access: 'token' | 'optional' | 'open' | 'deny';
  readonly hosts: readonly string[];
  readonly path: string;
  readonly methods: readonly string[];
  readonly pattern: RulePattern;
  readonly policy: PlainPolicy;
  /** `undefined`: only the policy decides. */
  readonly mcp?: RuleMcp | undefined;
  readonly when?: RuleCondition | undefined;
  /** Names in {@link Rules.issuers}; empty if the rule validates no token. */
  readonly issuers: readonly string[];
  /** `undefined`: the mode of the gate's settings. */
  readonly dpop: DpopMode | undefined;
  readonly mode: 'enforce' | 'report';
  /** End of tunnels and event streams that a token opened. */
  readonly streams: 'end-with-token' | 'end-with-revocation' | 'outlive-token';
  /** `protocol` if the token of a WebSocket may be one of its subprotocols. */
  readonly webSocketToken?: 'protocol' | undefined;
  readonly encodedSlash: 'allow' | 'refuse';
  readonly preflight: 'allow' | 'judge';
  /** `forward` if the upstream also gets `Authorization` and `DPoP`, for the gate as the proxy. */
  readonly credentials: 'forward' | 'remove';
  readonly assertion?: RuleAssertion | undefined;
  /** Name in {@link Rules.exchanges}; `undefined`: the upstream gets no token. */
  readonly exchange?: string | undefined;
  /** Name in {@link Rules.upstreams}; `undefined`: the upstream of the settings. */
  readonly upstream: string | undefined;
  /** Prefix that the upstream does not get, such as `/orders`. Empty: none. */
  readonly stripPrefix: string;
  /** Number of segments of {@link Rule.stripPrefix}. */
  readonly strippedSegments: number;
  readonly cors: GateCors | undefined;
}

export interface RuleIntrospection extends Omit<IntrospectionOptions, 'issuer' | 'clientSecret'> {
  readonly clientSecretFile: string;
}

export interface RuleExchange extends ExchangeTarget, Pick<TokenExchangeOptions, 'clientId' | 'endpoint' | 'bound'> {
  /** Name in {@link Rules.issuers}. */
  readonly issuer: string;
  readonly clientAuth?: 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt';
  readonly clientSecretFile?: string;
  readonly keyFile?: string;
  readonly actorTokenFile?: string;
}

export interface UpstreamEntry {
  /** Address, as for UPSTREAM. */
  readonly url: string;
  /** Seconds. Default: UPSTREAM_TIMEOUT. */
  readonly timeout?: number | undefined;
  /** Authorities that replace the roots of Node. */
  readonly caFile?: string | undefined;
  /** Certificate of the gate as the client, with its key. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Name in the certificate of the upstream. Default: the host of the address. */
  readonly serverName?: string | undefined;
}

export interface Rules {
  readonly rules: readonly Rule[];
  readonly issuers: ReadonlyMap<string, TrustedIssuer>;
  /** The introspection of an entry, under its name in {@link Rules.issuers}: entries of one URL do not share one. */
  readonly introspections: ReadonlyMap<string, RuleIntrospection>;
  readonly exchanges: ReadonlyMap<string, RuleExchange>;
  readonly upstreams: ReadonlyMap<string, UpstreamEntry>;
  readonly identity: Readonly<Record<string, ClaimPath>>;
  readonly assertion?: AssertionRules | undefined;
  /** Origin that serves the metadata of RFC 9728. */
  readonly resource: string | undefined;
  /** SHA-256 of the text of the rules, hex. */
  readonly digest?: string | undefined;
  find(host: RequestHost, segments: readonly string[], method: string): Rule | undefined;
}

/** Error for unusable rules. The message lists one problem per line. */
export class RulesError extends Error {
  override readonly name = 'RulesError';
}
