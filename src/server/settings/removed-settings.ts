/** Settings of earlier versions: what to do instead, by variable. */
export const removedSettings: Readonly<Record<string, string>> = {
  SOCKET_MODE: 'Set the umask of the process (UMask= of systemd), or SocketMode= of a socket unit.',
  SOCKET_GROUP:
    'Set SocketGroup= of a socket unit of systemd, or open the socket in a folder that only the group may enter.',
  DENY_LIST:
    'End tokens with portcullis revoke (ADMIN_KEY_FILE or REVOCATION_STORE), or pass isRevoked to the library.',
  STATUS_LISTS: 'End tokens by LOGOUT_CLIENTS, SHARED_SIGNALS or portcullis revoke, or pass isRevoked to the library.',
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
