import type { ExchangedToken } from '../core/exchange/exchange-cache.ts';
import type { DpopMode } from '../core/http/credentials.ts';
import { createReadExternalUrl, type Trust } from '../core/http/external-url.ts';
import type { Connection, ResourceRequest } from '../core/http/request.ts';
import { describeMismatch } from '../core/mcp/node-message.ts';
import { readTrustedHeaders } from '../core/mcp/operation-headers.ts';
import type { ReadMessage } from '../core/mcp/operations.ts';
import type { PlainPolicy } from '../core/policy/policy.ts';
import { metadataPath } from '../core/refusal/challenge.ts';
import type { Refusal } from '../core/refusal/refusal.ts';
import { Refused } from '../core/refused.ts';
import { isAccess, refusalOf } from '../core/resource-server/access.ts';
import { noteRule } from '../core/resource-server/events.ts';
import type { TrustedIssuer } from '../core/resource-server/issuers/trusted-issuer.ts';
import type { Access, ResourceServer } from '../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import type { AuditedFacts, Exchange, HeaderList } from '../server/http/exchange.ts';
import type { openAssertions } from './identity/assertions.ts';
import { createIdentityHeaders, type IdentityValues } from './identity/identity-headers.ts';
import type { GateCors } from './match/cors.ts';
import { describeTarget } from './match/request-target.ts';
import { type Choice, type ChooseRuleOptions, chooseTreatment, createChooseRule } from './match/rule-choice.ts';
import type { Rule, RuleMcp, Rules } from './match/rules.ts';
import type { McpMetadata } from './mcp-metadata.ts';

/** An entry of `issuers` of the rules: what belongs to it is found by its name, since two entries may have one URL. */
export type IssuerEntry = readonly [name: string, issuer: TrustedIssuer];

export interface ServerRequirements {
  /** Entries with their names. Empty: the server only writes refusals that precede the token. */
  readonly issuers: readonly IssuerEntry[];
  /** `undefined`: the mode of the gate's settings. */
  readonly dpop: DpopMode | undefined;
  /** `ignore` in report mode: the proof must stay usable for the upstream. */
  readonly proofs: 'record' | 'ignore';
}

/** Exchanges the tokens of callers for tokens of one API. */
export interface GateExchange {
  take(access: Access<unknown>): ExchangedToken | Refused | Promise<ExchangedToken | Refused>;
  /** Discards a token that the upstream has refused. Returns true if `take` returns another one now. */
  discard(access: Access<unknown>, used: ExchangedToken): boolean;
}

export interface GateOptions extends ChooseRuleOptions {
  readonly rules: Rules;
  /** Opens the resource server for these requirements; called once for each rule. */
  readonly openServer: (requirements: ServerRequirements) => ResourceServer<RegisteredClaims>;
  /** Peers whose X-Forwarded-* are trusted. Default: `none`. */
  readonly trustProxy?: Trust;
  readonly externalUrl?: string;
  /** Default: no rule sends an assertion. */
  readonly assertions?: ReturnType<typeof openAssertions>;
  /** Default: none is served. */
  readonly mcpMetadata?: McpMetadata | undefined;
  /** Exchanges by name. Absent for a test of rules, which exchanges nothing. */
  readonly exchanges?: ReadonlyMap<string, GateExchange>;
}

export interface AdmittedDecision extends Choice {
  readonly kind: 'admitted';
  readonly identity: IdentityValues;
  readonly access: Access<RegisteredClaims> | undefined;
  /** Token for the upstream, instead of the caller's. */
  readonly exchanged: ExchangedToken | undefined;
  /** Sent with the response to the client (RFC 9449 §8.2). */
  readonly dpopNonce: string | undefined;
  readonly wouldRefuse: unknown;
  readonly audited: AuditedFacts;
  readonly cors: HeaderList;
}

export interface RefusedDecision {
  readonly kind: 'refused';
  /** `undefined` if it was refused before a rule was found. */
  readonly rule: Rule | undefined;
  readonly request: ResourceRequest;
  readonly error: unknown;
  readonly refusal: Refusal;
  readonly audited: AuditedFacts;
  readonly cors: HeaderList;
}

export type Decision = AdmittedDecision | RefusedDecision;

/** Notes a decision in its exchange, for log, metrics and audit trail. */
export type NoteDecision = (exchange: Exchange, decision: Decision) => void;

export interface DecisionMeans {
  /** Reads the body for a rule with `mcp`; without it, the headers name the operation. */
  readonly readMessage?: () => Promise<ReadMessage>;
  /** The connection of the proxy that describes the request. */
  readonly peer?: Connection;
}

export type Gate = ReturnType<typeof createGate>;

export function createGate(options: GateOptions) {
  const { rules, openServer, trustProxy = 'none', externalUrl: pinned, assertions, mcpMetadata } = options;
  const identity = createIdentityHeaders(rules.identity, rules.assertion?.header);
  const readExternalUrl = createReadExternalUrl({ trust: trustProxy });
  const readCalledUrl = createReadExternalUrl({ trust: trustProxy, ...(pinned !== undefined && { pinned }) });
  const chooseRule = createChooseRule(rules, readExternalUrl, options);
  const outside = openServer({ issuers: [], dpop: undefined, proofs: 'ignore' });
  const servers = new Map(rules.rules.map((rule) => [rule, openServer(requirementsOf(rule, rules))]));
  // Built from the origin in the rules, never from a host that a client sent.
  const defaultMetadataUrl = rules.resource === undefined ? undefined : `${rules.resource}${metadataPath}`;
  /** Operations of messages that were read, for the console. */
  const readOperations = new WeakMap<ResourceRequest, ReadMessage['operations']>();

  const unmatched: AuditedFacts = { rules: rules.digest };
  const audited = new Map(
    rules.rules.map((rule) => {
      const entries = requirementsOf(rule, rules).issuers.map(([name, { issuer }]) => [issuer, name] as const);
      return [rule, { ...unmatched, entries: new Map<unknown, string>(entries) }];
    }),
  );
  const findAudited = (rule: Rule | undefined): AuditedFacts => (rule && audited.get(rule)) ?? unmatched;

  const findExchange = ({ exchange }: Rule) => (exchange === undefined ? undefined : options.exchanges?.get(exchange));
  const findCors = (rule: Rule | undefined): GateCors | undefined => rule?.cors ?? options.cors;

  const refuse = (error: unknown, request: ResourceRequest, rule?: Rule, call?: McpCall): RefusedDecision => {
    const server = (rule && servers.get(rule)) ?? outside;
    const policy = call?.policy ?? rule?.policy;
    const metadataUrl = (rule && mcpMetadata?.urlOf(rule)) ?? defaultMetadataUrl;
    return {
      kind: 'refused',
      rule,
      request,
      error,
      refusal: describeMismatch(server.describeRefusal(error, request, { policy, metadataUrl }), call?.message),
      cors: findCors(rule)?.describe(request) ?? noHeaders,
      audited: findAudited(rule),
    };
  };

  const admit = (
    { rule, request, externalUrl, isCorsPreflight }: Choice,
    admitted: Partial<Pick<AdmittedDecision, 'access' | 'identity' | 'wouldRefuse' | 'exchanged'>> = {},
  ): AdmittedDecision => ({
    kind: 'admitted',
    ...{ rule, request, externalUrl, isCorsPreflight },
    identity: admitted.identity ?? identity.empty,
    ...{ access: admitted.access, exchanged: admitted.exchanged },
    dpopNonce: admitted.access?.dpopNonce,
    wouldRefuse: admitted.wouldRefuse,
    cors: findCors(rule)?.[isCorsPreflight ? 'describePreflight' : 'describe'](request) ?? noHeaders,
    audited: findAudited(rule),
  });

  /** Decides after a refusal or a thrown error. A rule in report mode admits both. */
  const settleRefusal = (choice: Choice, error: unknown, call?: McpCall): Decision =>
    choice.rule.mode === 'report'
      ? admit(choice, { wouldRefuse: error ?? new Refused('unexpected') })
      : refuse(error, choice.request, choice.rule, call);

  /** An anonymous caller has no token that an entry could check. */
  const decideAnonymous = async (choice: Choice, call: McpCall): Promise<Decision> => {
    const { operations } = await call.read();
    if (operations instanceof Refused) return settleRefusal(choice, operations, call);
    if (operations.length > 0) return settleRefusal(choice, new Refused('missing_credentials'), call);
    return admit(choice);
  };

  return {
    ...{ rules, assertions, mcpMetadata, findExchange },
    /** Refuses a request before a rule is chosen, or after its rule has admitted it. */
    refuse: (error: unknown, request: ResourceRequest, rule?: Rule) => refuse(error, request, rule),
    /** Finds the rule of a request that validates a token, for an explanation. */
    findJudge(request: ResourceRequest, connection: Connection | undefined) {
      const choice = chooseRule(request, connection);
      if (choice instanceof Refused) return choice.reason;
      const treatment = chooseTreatment(choice);
      if (treatment !== 'judge')
        return treatment === 'deny' ? 'denied_by_rule' : treatment === 'open' ? 'open' : undefined;
      const { rule } = choice;
      const operations = readOperations.get(request);
      const policy = (operations && rule.mcp?.policies.explainedPolicy(operations)) ?? rule.policy;
      return { ...choice, server: servers.get(rule) ?? outside, policy };
    },
    /** Decides on a request as the client sent it. Never rejects. */
    async decide(
      request: ResourceRequest,
      connection: Connection | undefined,
      { readMessage, peer }: DecisionMeans = {},
    ): Promise<Decision> {
      let choice: Choice | undefined;
      let call: McpCall | undefined;
      try {
        const chosen = chooseRule(request, connection, peer);
        if (chosen instanceof Refused) return refuse(chosen, request);
        choice = chosen;
        const { rule, request: bound, externalUrl } = choice;
        const treatment = chooseTreatment(choice);
        if (treatment === 'ambiguous') return settleRefusal(choice, ambiguousSubprotocols());
        if (treatment === 'deny') return settleRefusal(choice, denyByRule(request, externalUrl));
        call =
          rule.mcp &&
          openCall(rule.mcp, readMessage ?? (async () => readTrustedHeaders(request)), (message) =>
            readOperations.set(bound, message.operations),
          );
        // A preflight has no token, and no message.
        if (treatment !== 'judge' && call !== undefined) return await decideAnonymous(choice, call);
        if (treatment !== 'judge') return admit(choice);
        noteRule(bound, rule.id);
        const access = await (servers.get(rule) ?? outside).judge(bound, call?.policy ?? rule.policy, connection);
        if (!isAccess(access)) return settleRefusal(choice, refusalOf(access), call);
        const url = rule.assertion?.isBound === true ? readCalledUrl(request, connection) : undefined;
        if (url instanceof Refused) return settleRefusal(choice, url, call);
        const assertion = assertions?.write?.(access, rule, url && { method: request.method, url });
        const taking = findExchange(rule)?.take(access);
        const exchanged = taking instanceof Promise ? await taking : taking;
        if (exchanged instanceof Refused) return settleRefusal(choice, exchanged, call);
        return admit(choice, { access, identity: identity.write(access, assertion), exchanged });
      } catch (error) {
        return choice === undefined ? refuse(error, request) : settleRefusal(choice, error, call);
      }
    },
  };
}

type McpCall = ReturnType<typeof openCall>;

/** Opens a request whose message is read once, when the policy needs it. */
function openCall(
  { policies }: RuleMcp,
  readMessage: () => Promise<ReadMessage>,
  onRead: (message: ReadMessage) => void,
) {
  let message: ReadMessage | undefined;
  const read = async (): Promise<ReadMessage> => {
    message ??= await readMessage();
    onRead(message);
    return message;
  };
  return {
    policy: policies.requestPolicy(async () => (await read()).operations) as PlainPolicy, // no entry of a rule has a schema
    /** `undefined` until it is read. */
    get message(): ReadMessage | undefined {
      return message;
    },
    read,
  };
}

const noHeaders: HeaderList = [];

const ambiguousSubprotocols = (): Refused =>
  new Refused('ambiguous_request', { context: { part: 'Sec-WebSocket-Protocol' } });

const denyByRule = (...target: Parameters<typeof describeTarget>): Refused =>
  new Refused('denied_by_rule', { context: describeTarget(...target) });

export function requirementsOf({ issuers, dpop, mode }: Rule, rules: Rules): ServerRequirements {
  return {
    issuers: [...rules.issuers].filter(([name]) => issuers.includes(name)),
    dpop,
    proofs: mode === 'report' ? 'ignore' : 'record',
  };
}
