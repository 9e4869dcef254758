import type { OperationPolicies } from '../../core/mcp/operation-policy.ts';
import type { Defined } from '../../core/option-members.ts';
import type { PlainPolicy } from '../../core/policy/policy.ts';
import type { TrustedIssuer } from '../../core/resource-server/issuers/trusted-issuer.ts';
import type { ClaimPath } from '../../core/token/grants.ts';
import type { policyMembers } from '../rules/schema/policy-members.ts';
import type { RuleEntry, RulesDocument } from '../rules/schema/rules-schema.ts';
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

/** Members of an entry that a rule has in another form, or only in its policy. */
type Compiled = 'assertion' | 'cors' | 'forward' | 'issuers' | 'mcp' | 'when' | keyof typeof policyMembers;
type Defaulted = 'access' | 'hosts' | 'methods' | 'mode' | 'preflight' | 'streams' | 'stripPrefix';
type Defaults = { readonly [Member in Defaulted]: NonNullable<RuleEntry[Member]> };

/** A rule with its defaults; it has its other members unchanged. Without a prefix to strip, `stripPrefix` is empty. */
export interface Rule extends Readonly<Omit<RuleEntry, Compiled | Defaulted>>, Defaults {
  readonly pattern: RulePattern;
  readonly policy: PlainPolicy;
  /** `undefined`: only the policy decides. */
  readonly mcp?: RuleMcp | undefined;
  readonly when?: RuleCondition | undefined;
  /** Names in {@link Rules.issuers}; empty if the rule validates no token. */
  readonly issuers: readonly string[];
  /** `forward` if the upstream also gets `Authorization` and `DPoP`, for the gate as the proxy. */
  readonly credentials: 'forward' | 'remove';
  readonly assertion?: RuleAssertion | undefined;
  /** Number of segments of {@link Rule.stripPrefix}. */
  readonly strippedSegments: number;
  readonly cors: GateCors | undefined;
}

type IssuerEntry = NonNullable<RulesDocument['issuers']>[string];
export type RuleIntrospection = Defined<NonNullable<IssuerEntry['introspection']>>;
export type RuleExchange = Defined<NonNullable<RulesDocument['exchanges']>[string]>;
export type UpstreamEntry = Readonly<Exclude<NonNullable<RulesDocument['upstreams']>[string], string>>;

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
