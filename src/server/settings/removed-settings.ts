const redisCertificate =
  'Set tls-auth-clients no in Redis and write user:password@ in the URL, or pass a client with the certificate to the library.';

/** Settings of earlier versions: what to do instead, by variable. */
export const removedSettings: Readonly<Record<string, string>> = {
  SOCKET_MODE: 'Set the umask of the process (UMask= of systemd), or SocketMode= of a socket unit.',
  SOCKET_GROUP:
    'Set SocketGroup= of a socket unit of systemd, or open the socket in a folder that only the group may enter.',
  DENY_LIST:
    'End tokens with portcullis revoke (ADMIN_KEY_FILE or REVOCATION_STORE), or pass isRevoked to the library.',
  STATUS_LISTS: 'End tokens by LOGOUT_CLIENTS, SHARED_SIGNALS or portcullis revoke, or pass isRevoked to the library.',
  LOG_FORMAT: 'Lines have one format, JSON. Rename the members of lines in the collector of the logs.',
  AUDIT_FORMAT: 'Lines have one format, JSON. Rename the members of lines in the collector of the audit trail.',
  LOGOUT_PATH: 'The path is /backchannel-logout. Register it at the provider, or rewrite the path in a proxy.',
  UPSTREAM_KEEP_ALIVE:
    'A connection is used again only if the upstream sent exactly its response. Disable keep-alive at the upstream.',
  OTEL_API_PATH: 'Install @opentelemetry/api next to portcullis.',
  REPLAY_CA: 'Set NODE_EXTRA_CA_CERTS to the file with the authorities of Redis.',
  REPLAY_CERT: redisCertificate,
  REPLAY_KEY: redisCertificate,
  SENTINEL_USERNAME: 'Sentinels get only SENTINEL_PASSWORD: set it to the password of their default user.',
  MCP_TOOLS: 'Write a rules file with "mcp": { "tools": { … } } in a rule, and set RULES.',
};

/** Returns the fix for a setting that an earlier version had, by its variable, `_FILE`, flag or member of a settings file. */
export function findRemoved(name: string): string | undefined {
  const plain = name
    .replaceAll('-', '_')
    .toUpperCase()
    .replace(/^_*(?:PORTCULLIS_)?/, '');
  const removed = [plain, plain.replace(/_FILE$/, '')].find((each) => Object.hasOwn(removedSettings, each));
  return removed === undefined ? undefined : `This version has no such setting. ${removedSettings[removed]}`;
}
