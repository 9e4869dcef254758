import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../core/jose/json.ts';
import type { AuditDecision } from '../../../core/resource-server/audit.ts';
import { parseScope } from '../../../core/token/grants.ts';
import type { AuditMemberName } from './decision.ts';
import type { DescribeIdentity } from './identity.ts';
import { formatTime, quote, writeMember } from './json-line.ts';

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

/** Lengths of values that may have been cut. */
export const cutLengths: ReadonlySet<number> = new Set(limits.map(([length]) => length));

/** Facts of a decision that its part about the token has, in addition to the claims. */
const tokenFacts = ['entry', 'scopes'] as const;

export type FormatAuditLine = (decision: AuditDecision, time: number) => string;

/** Creates the formatter. The part of a token is cached with its claims, so that it is hashed once. */
export function createAuditFormat(describeIdentity: DescribeIdentity, writesPath = true): FormatAuditLine {
  const cached = new WeakMap<JsonObject, { readonly decision: AuditDecision; readonly text: string }>();

  const describeToken = (decision: AuditDecision, length: number, most: number) => {
    const { claims, entry } = decision;
    if (claims === undefined) return '';
    const { iss, jti, cnf } = claims;
    const { sub, client_id: client, actor } = describeIdentity(claims) ?? {};
    const jkt = typeof cnf === 'object' && cnf !== null ? Reflect.get(cnf, 'jkt') : undefined;
    const add = (name: AuditMemberName, value: unknown): string =>
      typeof value === 'string' ? writeMember(name, value, length) : '';
    let text = add('issuer', iss) + add('entry', entry) + add('sub', sub) + add('client_id', client);
    if (actor !== undefined) {
      const members = Object.entries(actor).map(([name, value]) => `"${name}":${quote(value, length)}`);
      text += `,"actor":{${members.join(',')}}`;
    }
    text += add('jkt', jkt);
    if (typeof jti === 'string') text += add('jti_hash', createHash('sha256').update(jti).digest('base64url'));
    const { scope } = claims;
    const scopes = [...(decision.scopes ?? parseScope(typeof scope === 'string' ? scope : undefined))];
    if (scopes.length === 0) return text;
    const shown = scopes.slice(0, most).map((each) => quote(each, length));
    const omitted = scopes.length > most ? `,"scopes_omitted":${scopes.length - most}` : '';
    return `${text},"scopes":[${shown.join(',')}]${omitted}`;
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
    const add = (name: AuditMemberName, value: string | undefined): string => writeMember(name, value, length);
    return (
      `{"time":"${time}","event":"decision"${add('id', each.id)}${add('request_id', each.requestId)}` +
      `${add('trace_id', each.traceId)},"decision":"${each.decision}"${add('reason', each.reason)}` +
      `${add('method', each.method)}${add('route', each.route)}${add('rule', each.rule)}${add('host', each.host)}` +
      `${writesPath ? add('path', each.path) : ''}` +
      `${each.status === undefined ? '' : `,"status":${each.status}`}${token}${add('scheme', each.scheme)}` +
      `${each.rules === undefined ? '' : `,"rules":"${each.rules}"`}${add('client_ip', each.clientIp)}}\n`
    );
  };

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
