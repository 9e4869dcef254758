import { AccessError } from '../failures.ts';
import type { DpopMode } from '../http/credentials.ts';
import { createReadExternalUrl } from '../http/external-url.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { Trust } from '../http/trust.ts';
import { metadataPath } from '../refusal/metadata-link.ts';
import type { Refusal } from '../refusal/refusal.ts';
import { isAccess, refusalOf } from '../resource-server/access.ts';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { TrustedIssuer } from '../resource-server/trusted-issuer.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { createIdentityHeaders, type IdentityHeaders, type IdentityValues } from './identity/identity-headers.ts';
import { chooseTreatment, createChooseRule } from './match/rule-choice.ts';
import type { Rule, Rules } from './rules/rules.ts';

/** What judges the tokens of some rules. */
export interface ServerOrder {
  /** None: it only answers what is refused before a token is looked at. */
  readonly issuers: readonly TrustedIssuer[];
  /** `undefined`: what the gate is set to. */
  readonly dpop: DpopMode | undefined;
  /** `ignore` for rules that only report: a proof they have seen may still be used. */
  readonly proofs: 'record' | 'ignore';
}

/** What a gate is made of. */
export interface GateOptions {
  readonly rules: Rules;
  /** Gives the resource server of an order; asked once for each rule. */
  readonly openServer: (order: ServerOrder) => ResourceServer<RegisteredClaims>;
  /** Peers whose X-Forwarded-* are believed about the URL of a request. Default `none`. */
  readonly trustProxy?: Trust;
}

/** A request that may pass. */
export interface Admission {
  readonly kind: 'admitted';
  readonly rule: Rule;
  /** What the upstream is told of the caller. */
  readonly identity: IdentityValues;
  /** Of a caller whose token was judged. */
  readonly access: Access<RegisteredClaims> | undefined;
  /** Goes with the answer to the client (RFC 9449 §8.2). */
  readonly dpopNonce: string | undefined;
  /** Why it would have been refused, if its rule did not only report. */
  readonly wouldRefuse: unknown;
}

/** A request that is refused, and its answer. */
export interface Rejection {
  readonly kind: 'refused';
  /** `undefined` if it was refused before a rule was found. */
  readonly rule: Rule | undefined;
  readonly error: unknown;
  readonly refusal: Refusal;
}

export type Decision = Admission | Rejection;

/** Judges requests for other servers. */
export interface Gate {
  readonly rules: Rules;
  readonly identity: IdentityHeaders;
  /** Decides about a request, as the client sent it. Throws nothing; a promise only if something has to be waited for. */
  decide(request: ResourceRequest, connection: Connection | undefined): Decision | Promise<Decision>;
  /** What judges the requests of a rule, by its id: for an explanation. */
  findJudge(id: string): { readonly server: ResourceServer<RegisteredClaims>; readonly rule: Rule } | undefined;
  /** Refuses a request that no rule was asked about. */
  refuse(error: unknown, request: ResourceRequest): Rejection;
}

/** Creates a gate. Throws `TypeError` for an order that no server can be opened for. */
export function createGate({ rules, openServer, trustProxy = 'none' }: GateOptions): Gate {
  const identity = createIdentityHeaders(rules.identity);
  const chooseRule = createChooseRule(rules, createReadExternalUrl({ trust: trustProxy }));
  const outside = openServer({ issuers: [], dpop: undefined, proofs: 'ignore' });
  const servers = new Map(rules.rules.map((rule) => [rule, openServer(orderOf(rule, rules))]));
  // Of the origin that the rules name, never of a host that a client has named; without one there is no link.
  const metadataUrl = rules.resource === undefined ? undefined : `${rules.resource}${metadataPath}`;

  const refuse = (error: unknown, request: ResourceRequest, rule?: Rule): Rejection => {
    const server = (rule && servers.get(rule)) ?? outside;
    const refusal = server.describeRefusal(error, request, { policy: rule?.policy, metadataUrl });
    return { kind: 'refused', rule, error, refusal };
  };

  const admit = (rule: Rule, access: Access<RegisteredClaims> | undefined, wouldRefuse?: unknown): Admission => {
    const values = access === undefined ? identity.empty : identity.write(access);
    return { kind: 'admitted', rule, identity: values, access, dpopNonce: access?.dpopNonce, wouldRefuse };
  };

  /** For a refusal, and for a thrown error, which is a defect. A rule in report mode admits both. */
  const settleRefusal = (rule: Rule, request: ResourceRequest, error: unknown): Decision =>
    rule.mode === 'report'
      ? admit(rule, undefined, error ?? new AccessError('unexpected'))
      : refuse(error, request, rule);

  const settle = (rule: Rule, request: ResourceRequest, judged: Access<RegisteredClaims> | AccessError): Decision =>
    isAccess(judged) ? admit(rule, judged) : settleRefusal(rule, request, refusalOf(judged));

  const judge = (
    rule: Rule,
    request: ResourceRequest,
    connection: Connection | undefined,
  ): Decision | Promise<Decision> => {
    try {
      const judged = (servers.get(rule) ?? outside).judge(request, rule.policy, connection);
      if (!(judged instanceof Promise)) return settle(rule, request, judged);
      return judged.then(
        (settled) => settle(rule, request, settled),
        (error: unknown) => settleRefusal(rule, request, error),
      );
    } catch (error) {
      return settleRefusal(rule, request, error);
    }
  };

  return {
    rules,
    identity,
    refuse,
    findJudge(id) {
      const rule = rules.rules.find((each) => each.id === id);
      const server = rule && servers.get(rule);
      return rule === undefined || server === undefined ? undefined : { rule, server };
    },
    decide(request, connection) {
      let rule: Rule | AccessError;
      try {
        rule = chooseRule(request, connection);
      } catch (error) {
        return refuse(error, request);
      }
      if (rule instanceof AccessError) return refuse(rule, request);
      const treatment = chooseTreatment(rule, request);
      if (treatment === 'judge') return judge(rule, request, connection);
      if (treatment === 'deny') return settleRefusal(rule, request, new AccessError('denied_by_rule'));
      return admit(rule, undefined);
    },
  };
}

/** What the tokens of a rule are judged by. */
export function orderOf({ issuers, dpop, mode }: Rule, rules: Rules): ServerOrder {
  return {
    issuers: issuers.flatMap((name) => rules.issuers.get(name) ?? []),
    dpop,
    proofs: mode === 'report' ? 'ignore' : 'record',
  };
}
