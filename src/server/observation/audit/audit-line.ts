import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../core/jose/json.ts';
import type { AuditDecision } from '../../../core/resource-server/audit.ts';
import { parseScope } from '../../../core/token/grants.ts';
import { type AuditMemberName, auditMembers } from './decision.ts';
import type { DescribeIdentity } from './identity.ts';

export type AuditFormat = 'portcullis' | 'ecs';

export const ecsVersion = '8.17.0';
/** Maximum size of a line, in bytes: PIPE_BUF of Linux, so that a write to a pipe is atomic. */
export const maxLineBytes = 4096;
/** Characters of a value, and scopes: the next pair is used if the line is too long. */
const limits = [
  [256, Number.POSITIVE_INFINITY],
  [256, 12],
  [96, 12],
  [32, 4],
  [8, 1],
] as const;

/** Control and bidirectional characters, line separators, surrogates without a partner. JSON escapes those below U+0020. */
const hidden =
  /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function quote(text: string, length: number): string {
  if (text.length <= length && isPlain(text)) return `"${text}"`;
  const cut = text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
  return JSON.stringify(cut).replace(hidden, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Reports whether a string needs no escape. A loop is faster than a pattern for short strings. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}

/** Facts of a decision that its part about the token has, in addition to the claims. */
const tokenFacts = ['entry', 'requiredScopes', 'grantedScopes'] as const;

export type FormatAuditLine = (decision: AuditDecision, time: number) => string;

interface TokenPart {
  readonly decision: AuditDecision;
  readonly text: string;
}

/** Creates the formatter. The part of a token is cached with its claims, so that it is hashed once. */
export function createAuditFormat(format: AuditFormat, describeIdentity: DescribeIdentity): FormatAuditLine {
  const keys = nameMembers(format);
  const cached = new WeakMap<JsonObject, TokenPart>();
  const start = format === 'ecs' ? `{"ecs.version":"${ecsVersion}","event.kind":"event"` : '{';
  const event = `${keys.event}"decision"`;
  const outcome = (admitted: boolean): string =>
    format === 'ecs' ? `,"event.outcome":"${admitted ? 'success' : 'failure'}"` : '';
  const outcomes = { admitted: outcome(true), would_refuse: outcome(true), refused: outcome(false) };

  const describeToken = (decision: AuditDecision, length: number, most: number) => {
    const { claims, entry, requiredScopes, grantedScopes } = decision;
    if (claims === undefined) return '';
    const { iss, jti, cnf } = claims;
    const { sub, client_id: client, actor } = describeIdentity(claims) ?? {};
    const jkt = typeof cnf === 'object' && cnf !== null ? Reflect.get(cnf, 'jkt') : undefined;
    let text = '';
    const add = (name: AuditMemberName, value: unknown): void => {
      if (typeof value === 'string') text += keys[name] + quote(value, length);
    };
    add('issuer', iss);
    add('entry', entry);
    add('sub', sub);
    add('client_id', client);
    if (actor !== undefined) {
      const members = Object.entries(actor).map(([name, value]) => `"${name}":${quote(value, length)}`);
      text += `${keys.actor}{${members.join(',')}}`;
    }
    add('jkt', jkt);
    add('jti_hash', typeof jti === 'string' ? createHash('sha256').update(jti).digest('base64url') : undefined);
    const { scope } = claims;
    const granted = grantedScopes ?? parseScope(typeof scope === 'string' ? scope : undefined);
    const scopes = (requiredScopes ?? []).filter((each) => granted.has(each));
    if (scopes.length > 0) {
      const shown = scopes.slice(0, most).map((each) => quote(each, length));
      text += `${keys.scopes}[${shown.join(',')}]`;
      if (scopes.length > most) text += `${keys.scopes_omitted}${scopes.length - most}`;
    }
    return text;
  };

  const findToken = (decision: AuditDecision): string => {
    const { claims } = decision;
    if (claims === undefined) return '';
    const known = cached.get(claims);
    // Servers that share an introspection share its claims, not what they grant by them.
    if (known !== undefined && tokenFacts.every((name) => known.decision[name] === decision[name])) return known.text;
    const text = describeToken(decision, ...limits[0]);
    cached.set(claims, { decision, text });
    return text;
  };

  const write = (each: AuditDecision, { time, token, length }: { time: string; token: string; length: number }) => {
    let line = `${start}${start === '{' ? keys.time.slice(1) : keys.time}"${time}"${event}`;
    line += keys.id + quote(each.id, length);
    if (each.requestId !== undefined) line += keys.request_id + quote(each.requestId, length);
    if (each.traceId !== undefined) line += keys.trace_id + quote(each.traceId, length);
    line += `${keys.decision}"${each.decision}"${outcomes[each.decision]}`;
    if (each.reason !== undefined) line += keys.reason + quote(each.reason, length);
    line += keys.method + quote(each.method, length);
    if (each.route !== undefined) line += keys.route + quote(each.route, length);
    if (each.rule !== undefined) line += keys.rule + quote(each.rule, length);
    if (each.host !== undefined) line += keys.host + quote(each.host, length);
    if (each.status !== undefined) line += keys.status + each.status;
    line += token;
    if (each.scheme !== undefined) line += keys.scheme + quote(each.scheme, length);
    if (each.rules !== undefined) line += `${keys.rules}"${each.rules}"`;
    if (each.clientIp !== undefined) line += keys.client_ip + quote(each.clientIp, length);
    return `${line}}\n`;
  };

  const formatTime = createFormatTime();
  return (decision, at) => {
    const time = formatTime(at);
    let line = write(decision, { time, token: findToken(decision), length: limits[0][0] });
    for (const [length, most] of limits.slice(1)) {
      if (line.length * 3 <= maxLineBytes || Buffer.byteLength(line) <= maxLineBytes) break;
      line = write(decision, { time, token: describeToken(decision, length, most), length });
    }
    return line;
  };
}

function nameMembers(format: AuditFormat): Readonly<Record<AuditMemberName, string>> {
  const names = Object.entries(auditMembers).map(([name, { ecs }]) => [name, `,"${format === 'ecs' ? ecs : name}":`]);
  return Object.fromEntries(names) as Readonly<Record<AuditMemberName, string>>; // one for each member
}

/** Formats ISO 8601. Formatting a second is slow, and many lines share one. */
function createFormatTime(): (time: number) => string {
  let second = Number.NaN;
  let text = '';
  return (time) => {
    const milliseconds = time % 1000;
    if (time - milliseconds !== second) {
      second = time - milliseconds;
      text = new Date(second).toISOString().slice(0, 20);
    }
    return `${text}${String(milliseconds).padStart(3, '0')}Z`;
  };
}
