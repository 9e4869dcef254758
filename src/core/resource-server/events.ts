import { randomUUID } from 'node:crypto';
import type { Attributes, Span, Tracer, TracerProvider } from '@opentelemetry/api';
import { AccessError, type FailureContext, failures, type Reason } from '../failures.ts';
import { readScheme } from '../http/credentials.ts';
import type { ReadClientAddress } from '../http/external-url.ts';
import { cutSentPath, type ResourceRequest, readSentPath } from '../http/request.ts';
import { showOutage } from '../keys/key-set-options.ts';
import { Refused } from '../refused.ts';
import { show, showComparison } from '../shown-comparison.ts';
import { showText } from '../shown-text.ts';
import { missingKeys } from '../token/access-token.ts';
import { type Access, findAdmitted, isAccess } from './access.ts';
import type { Judge } from './judgement.ts';
import type { AnyServerOptions, Emit, ResourceServerEvent } from './options.ts';

/** Reports every grant, every refusal, and every thrown error as `unexpected`. */
export function watchRefusals(judge: Judge, emit: Emit): Judge {
  return async (request, policy, connection) => {
    const { method } = request;
    const refuse = (reason: Reason, context: FailureContext | undefined, cause: unknown): void =>
      emit({ type: 'refused', reason, method, path: readPath(request), context, cause });
    try {
      const judged = await judge(request, policy, connection);
      if (isAccess(judged)) emit({ type: 'granted', method, scheme: judged.scheme });
      else if (judged instanceof AccessError) refuse(judged.reason, contextOf(judged), judged.cause);
      return judged;
    } catch (cause) {
      refuse('unexpected', undefined, cause);
      throw cause;
    }
  };
}

/** The facts of a refusal, with the expected and the received value of the check that failed, or the key that is missing. */
function contextOf(refused: AccessError | Refused): FailureContext | undefined {
  const { compare, kid } = (refused instanceof Refused && refused.evidence) || {};
  const key = kid !== undefined && missingKeys.has(refused.reason) ? { kid: show(kid) } : {};
  const shown = { ...key, ...(compare !== undefined && showComparison(compare())) };
  const facts = Object.entries(shown).map(([name, value]) => [name, [value].flat().join(', ')]);
  return facts.length === 0 ? refused.context : { ...Object.fromEntries(facts), ...refused.context };
}

/** The path of a request. A segment that may be a token or an e-mail address is hidden. */
function readPath(request: ResourceRequest): string {
  return cutSentPath(request).replace(/[^/]{33,}|[^/]*(?:@|%40)[^/]*/gi, '…') || '/';
}

const maxMethod = 16;

/**
 * Creates a listener that writes one line for each refusal, and when fetches of keys begin to fail: method, path, reason, the expected and the received value, and the fix. Values
 * of tokens are escaped and of bounded length; tokens, proofs and keys are never written. Default of `write`: `console.warn`.
 *
 * @example
 * const server = createResourceServer({
 *   issuer: 'idp.example', audience: 'https://api.example/', onEvent: explainRefusals(),
 * });
 */
export function explainRefusals(
  // biome-ignore lint/suspicious/noConsole: the console is where a developer looks.
  write: (line: string) => void = (line) => console.warn(line),
): (event: ResourceServerEvent) => void {
  if (typeof write !== 'function')
    throw new TypeError('explainRefusals: write a function, as in (line) => log.warn(line)');
  return (event) => {
    const outage = event.type === 'keys' ? showOutage(event.event) : undefined;
    if (outage !== undefined) write(outage);
    if (event.type !== 'refused') return;
    const { reason, method, path, context = {} } = event;
    const facts = Object.entries(context).map(([name, value]) => `${name} ${value === '' ? '(empty)' : value}`);
    const refused = `portcullis: ${showText(method, maxMethod)} ${showText(path)} refused: ${reason}`;
    write([refused, ...facts, failures[reason].fix].join('; '));
  };
}

const requestIdForm = /^[\w.:-]{1,128}$/;
const traceForm = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;

/** Reads X-Request-Id; `undefined` if it has other characters than an id. */
export function readRequestId({ headers }: Pick<ResourceRequest, 'headers'>): string | undefined {
  const id = headers.get('x-request-id');
  return id !== null && requestIdForm.test(id) ? id : undefined;
}

/** Reads the id of the client's trace (`traceparent`). */
export function readClientTrace({ headers }: Pick<ResourceRequest, 'headers'>): string | undefined {
  const parent = headers.get('traceparent');
  return parent === null ? undefined : traceForm.exec(parent)?.[1];
}

/** Records each decision, unless the caller does (no `record`). Refuses all requests while the audit is unavailable. */
export function auditDecisions(
  judge: Judge,
  audit: NonNullable<AnyServerOptions['audit']>,
  readClientAddress: ReadClientAddress,
): Judge {
  return async (request, policy, connection) => {
    if (!audit.isAvailable()) return new Refused('audit_unavailable');
    let judged: Access<unknown> | AccessError | undefined;
    try {
      judged = await judge(request, policy, connection);
      return judged;
    } finally {
      const { method, headers } = request;
      const access = isAccess(judged) ? judged : undefined;
      const refused = judged instanceof AccessError ? judged.reason : 'unexpected';
      const reason = access === undefined ? refused : undefined;
      const evidence = judged instanceof Refused ? judged.evidence : undefined;
      audit.record?.({
        id: randomUUID(),
        requestId: readRequestId(request),
        traceId: readClientTrace(request),
        decision: access === undefined ? 'refused' : 'admitted',
        reason,
        method,
        host: headers.get('host') ?? undefined,
        path: readSentPath(request),
        status: reason && failures[reason].status,
        // The claims of the token, even if a schema has replaced the claims of the access.
        claims: (findAdmitted(access)?.token ?? evidence)?.claims,
        scopes: access?.scopes ?? evidence?.scopes,
        scheme: access?.scheme ?? readScheme(headers.get('authorization') ?? ''),
        clientIp: readClientAddress(request, connection),
      });
    }
  };
}

/** Place where `@opentelemetry/api` 1.x keeps the SDK. Loading that package takes half the time of loading this library. */
const registry = Symbol.for('opentelemetry.js.api.1');
const globals = globalThis as { readonly [registry]?: { readonly trace?: TracerProvider } }; // only the API writes there

/** Returns the provider of tracers that an SDK has registered. Its type would need that package in the declarations. */
export const findTracerProvider = (): unknown => globals[registry]?.trace;

const errorStatus = 2;

let provider: TracerProvider | undefined;
let tracer: Tracer | undefined;

/** The tracer of the SDK that is registered now. An SDK can come after this library, and can leave before it. */
function findTracer(): Tracer | undefined {
  const current = globals[registry]?.trace;
  if (current !== provider) {
    provider = current;
    tracer = current?.getTracer('portcullis');
  }
  return tracer;
}

/** Rules of a gate, by the requests that they decide. */
const rules = new WeakMap<ResourceRequest, string>();

/** Names the rule of a request, for its span. Does nothing without an SDK. */
export function noteRule(request: ResourceRequest, rule: string): void {
  if (findTracer() !== undefined) rules.set(request, rule);
}

/** Runs an authorization in a span `authorize` that carries its outcome, scheme, verified issuer and rule. */
export function traceAuthorize<T>(request: ResourceRequest, judge: () => Promise<T>): Promise<T> {
  const span = findTracer()?.startSpan('authorize');
  return span?.isRecording() ? traceIn(span, request, judge) : judge();
}

async function traceIn<T>(span: Span, request: ResourceRequest, judge: () => Promise<T>): Promise<T> {
  let outcome = 'unexpected';
  try {
    const judged = await judge();
    span.setAttributes(describeJudged(judged, request));
    outcome = judged instanceof AccessError ? judged.reason : 'granted';
    return judged;
  } finally {
    span.setAttribute('portcullis.outcome', outcome);
    // A refusal is a normal outcome; an unexpected error is a fault.
    if (outcome === 'unexpected') span.setStatus({ code: errorStatus });
    span.end();
  }
}

/** An attribute that is `undefined` is omitted by the SDK. */
function describeJudged(judged: unknown, request: ResourceRequest): Attributes {
  const granted = isAccess(judged) ? judged : undefined;
  // Only verified claims: a forged token must not name an issuer.
  const claims = granted?.claims ?? (judged instanceof Refused ? judged.evidence?.claims : undefined);
  const issuer = (claims as { readonly iss?: unknown } | undefined)?.iss;
  return {
    'portcullis.scheme': granted?.scheme ?? readScheme(request.headers.get('authorization') ?? ''),
    'portcullis.issuer': typeof issuer === 'string' ? issuer : undefined,
    'portcullis.rule': rules.get(request),
  };
}
