// The gate as the proxy before an upstream of the row.
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { listen, stop } from '../shared/network.js';
import { audience } from './tokens.js';

export const adminKey = 'an admin key of the faults, of more than 32 bytes';

/** The routes of the constant load. */
export const steadyRules = [
  { id: 'public', path: '/api/public', access: 'open' },
  { id: 'scoped', path: '/api/private-scoped', scopes: ['read:messages'] },
];
/** The routes of the row. */
const ownRules = [
  { id: 'stream', path: '/stream' },
  { id: 'report', path: '/report', mode: 'report' },
];

/** Creates an upstream whose every response is an empty object. */
export const createUpstream = () => createServer((_incoming, outgoing) => void outgoing.end('{}'));

/**
 * Starts the upstream, unless the rules name their `upstreams`. `words` of the result writes the rules file for an issuer, with
 * `members` in addition to the issuers; `write` replaces it.
 *
 * @param {{ folder: string }} bench
 * @param {string} name of its files
 * @param {any} options
 */
export async function openGate(
  { folder },
  name,
  { upstream = createUpstream(), rules = [...steadyRules, ...ownRules], ...members } = {},
) {
  const own = members.upstreams === undefined ? ['--upstream', `http://127.0.0.1:${await listen(upstream)}`] : [];
  const [file, keyFile] = [join(folder, `${name}.json`), join(folder, `${name}.key`)];
  writeFileSync(keyFile, adminKey, { mode: 0o600 });
  const write = (issuer, changed = rules) => {
    writeFileSync(
      `${file}.new`,
      JSON.stringify({ issuers: { staff: { issuer, audience } }, ...members, rules: changed }),
    );
    renameSync(`${file}.new`, file);
  };
  return {
    environment: { ADMIN_KEY_FILE: keyFile },
    write,
    words(issuer) {
      write(issuer);
      return ['gate', '--rules', file, ...own];
    },
    stop: () => stop(upstream),
  };
}

/** Sends a cutoff to the admin port. Resolves with the status, and the milliseconds that it took. */
export async function revoke({ service, issuer }, cutoff) {
  const startedAt = performance.now();
  const { status } = await fetch(`${service.adminUrl}/revocations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ issuer, ...cutoff }),
  });
  return { status, took: performance.now() - startedAt };
}
