interface AuditMember {
  readonly ecs: string;
  readonly type: 'string' | 'integer' | 'strings' | 'actor';
  readonly meaning: string;
}

const string = (ecs: string, meaning: string): AuditMember => ({ ecs, type: 'string', meaning });

/** Every member of a line, in the order of the documentation. */
export const auditMembers = {
  time: string('@timestamp', 'Time of the decision, ISO 8601 in UTC.'),
  event: string('portcullis.event', 'Always `decision`.'),
  id: string('portcullis.id', 'Id of the request, as in the request log and in `X-Request-Id` of a refusal.'),
  request_id: string('http.request.id', '`X-Request-Id` of the client.'),
  trace_id: string('trace.id', 'Id of the trace.'),
  decision: string(
    'portcullis.decision',
    '`admitted`, `refused`, or `would_refuse` (admitted by a rule in report mode).',
  ),
  reason: string('event.reason', 'Reason of the refusal.'),
  method: string('http.request.method', 'Method of the request.'),
  route: string('portcullis.route', 'Path of the endpoint.'),
  rule: string('rule.id', 'Id of the rule; `unmatched` without a rule.'),
  host: string('url.domain', 'Host of the request.'),
  status: {
    ecs: 'http.response.status_code',
    type: 'integer',
    meaning: 'Status of the response; absent if the gate forwards the request.',
  },
  issuer: string('portcullis.issuer', 'Issuer of the token.'),
  entry: string('portcullis.entry', 'Name of the issuer in the rules: entries of one URL differ in it.'),
  sub: string('user.id', 'Subject of the token.'),
  client_id: string('portcullis.client_id', 'Client of the token.'),
  actor: {
    ecs: 'portcullis.actor',
    type: 'actor',
    meaning: 'Outermost actor of the token: `sub`, `iss`, `client_id`.',
  },
  scopes: { ecs: 'portcullis.scopes', type: 'strings', meaning: 'Scopes that the policy requires and the token has.' },
  scopes_omitted: {
    ecs: 'portcullis.scopes_omitted',
    type: 'integer',
    meaning: 'Number of scopes that the limit of a line has cut.',
  },
  scheme: string('portcullis.scheme', '`Bearer` or `DPoP`.'),
  jkt: string('portcullis.jkt', 'Thumbprint of the key that the token is bound to.'),
  jti_hash: string('portcullis.jti_hash', 'SHA-256 of the `jti` of the token, base64url.'),
  rules: string('portcullis.rules', 'SHA-256 of the active rules, hex.'),
  client_ip: string('client.ip', 'Address of the client.'),
} as const satisfies Readonly<Record<string, AuditMember>>;

export type AuditMemberName = keyof typeof auditMembers;
