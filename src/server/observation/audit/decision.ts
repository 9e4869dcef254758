interface AuditMember {
  readonly type: 'string' | 'integer' | 'strings' | 'actor';
  readonly meaning: string;
}

const string = (meaning: string): AuditMember => ({ type: 'string', meaning });

/** Every member of a line, in the order of the documentation. */
export const auditMembers = {
  time: string('Time of the decision, ISO 8601 in UTC.'),
  event: string('Always `decision`.'),
  id: string('Id of the request, as in the request log and in `X-Request-Id` of a refusal.'),
  request_id: string('`X-Request-Id` of the client.'),
  trace_id: string('Id of the trace.'),
  decision: string('`admitted`, `refused`, or `would_refuse` (admitted by a rule in report mode).'),
  reason: string('Reason of the refusal.'),
  method: string('Method of the request.'),
  route: string('Path of the endpoint.'),
  rule: string('Id of the rule; `unmatched` without a rule.'),
  host: string(
    'Host of the request, as rules compare it: from X-Forwarded-Host of a trusted proxy, without the default port.',
  ),
  path: string('Path of the request, without its query; absent with `AUDIT_PATH=off`.'),
  status: { type: 'integer', meaning: 'Status of the response; absent if the gate forwards the request.' },
  issuer: string('Issuer of the token.'),
  entry: string('Name of the issuer in the rules: entries of one URL differ in it.'),
  sub: string('Subject of the token.'),
  client_id: string('Client of the token.'),
  actor: { type: 'actor', meaning: 'Outermost actor of the token: `sub`, `iss`, `client_id`.' },
  scopes: { type: 'strings', meaning: 'Scopes of the token.' },
  scopes_omitted: { type: 'integer', meaning: 'Number of scopes that the limit of a line has cut.' },
  scheme: string('`Bearer` or `DPoP`.'),
  jkt: string('Thumbprint of the key that the token is bound to.'),
  jti_hash: string('SHA-256 of the `jti` of the token, base64url.'),
  rules: string('SHA-256 of the active rules, hex.'),
  client_ip: string('Address of the client.'),
} as const satisfies Readonly<Record<string, AuditMember>>;

export type AuditMemberName = keyof typeof auditMembers;
