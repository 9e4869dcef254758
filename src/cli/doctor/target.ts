import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { withoutMark } from '../../core/jose/json.ts';
import { readProofKey } from '../../core/jose/signed-proof.ts';
import { UsageError } from '../commands/failure.ts';
import type { Flags } from '../commands/flags.ts';

export type Target = ReturnType<typeof readTarget>;

export function readTarget(values: Flags<'doctor'>['values']) {
  const { 'from-outside': outside, peer: peers = [] } = values;
  const urls = outside === undefined ? peers : [outside, ...peers];
  if (!urls.every((url) => /^https?:\/\//.test(url) && URL.canParse(url))) {
    throw new UsageError('--from-outside and --peer: use URLs that begin with http:// or https://.');
  }
  const timeoutSeconds = Number(values.timeout ?? 5);
  if (!(timeoutSeconds > 0 && timeoutSeconds <= 60)) throw new UsageError('--timeout: use seconds, up to 60.');
  const read = (flag: 'dpop-key-file' | 'token-file' | 'client-cert'): string | undefined => {
    const file = values[flag];
    if (file === undefined) return undefined;
    return attempt(`--${flag}: the file cannot be read.`, () => withoutMark(readFileSync(file)).toString().trim());
  };
  const key = read('dpop-key-file');
  const keyFix = '--dpop-key-file: use a private key for proofs, in PEM or as JWK.';
  const identity = read('client-cert');
  const identityFix = '--client-cert: use a certificate with its key, in PEM.';
  if (identity !== undefined) attempt(identityFix, () => createSecureContext({ cert: identity, key: identity }));
  return {
    outside: outside === undefined ? undefined : new URL(outside),
    peers: peers.map((peer) => new URL(peer)),
    token: read('token-file'),
    proofKey:
      key === undefined ? undefined : attempt(keyFix, () => readProofKey(key.startsWith('{') ? JSON.parse(key) : key)),
    /** Client certificate and key, in PEM. */
    identity,
    timeoutSeconds,
  };
}

function attempt<T>(problem: string, run: () => T): T {
  try {
    return run();
  } catch {
    throw new UsageError(problem);
  }
}
