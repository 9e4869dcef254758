import type { DpopMode } from '../../http/credentials.ts';
import type { PlainPolicy } from '../../policy/policy.ts';
import type { TrustedIssuer } from '../../resource-server/trusted-issuer.ts';
import type { RequestHost } from '../match/rule-host.ts';

/** Who a rule lets in: with a token, also without one, everybody, nobody. */
export type RuleAccess = 'token' | 'optional' | 'open' | 'deny';

/** One rule, ready to be used. */
export interface Rule {
  readonly id: string;
  readonly access: RuleAccess;
  /** The requests that it is for, as the rule says it; empty lists mean any. */
  readonly hosts: readonly string[];
  readonly path: string;
  readonly methods: readonly string[];
  readonly policy: PlainPolicy;
  /** Names in {@link Rules.issuers}; empty if nobody's token is asked for. */
  readonly issuers: readonly string[];
  /** `undefined`: what the gate is set to. */
  readonly dpop: DpopMode | undefined;
  readonly mode: 'enforce' | 'report';
  readonly encodedSlash: 'allow' | 'refuse';
  readonly preflight: 'allow' | 'judge';
  /** Whether the upstream gets `Authorization` and `DPoP` too; for the gate as the proxy. */
  readonly credentials: 'forward' | 'remove';
}

/** What a gate goes by. */
export interface Rules {
  readonly rules: readonly Rule[];
  /** By the names that rules use. */
  readonly issuers: ReadonlyMap<string, TrustedIssuer>;
  /** Headers and the claims that they carry. */
  readonly identity: Readonly<Record<string, string>>;
  /** The origin under which the metadata of RFC 9728 is served; `undefined` if it is not. */
  readonly resource: string | undefined;
  find(host: RequestHost, segments: readonly string[], method: string): Rule | undefined;
}
