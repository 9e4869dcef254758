import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { type LocalIdpOptions, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { createCall } from './call-over-tls.ts';
import { useFolder } from './folder.ts';
import { takeSigningKey } from './rsa-keys.ts';

/** Options of a local provider, without its folder. */
export const idpOptions = {
  makeKey: takeSigningKey,
  port: 0,
  audience: 'https://api.portcullis.example/',
  customClaim: 'https://portcullis.example/claim',
} as const;

/**
 * Starts a local provider for the tests of a file, and stops it after them. `environment` is for commands that look for it, and
 * `call` trusts its certificate.
 */
export async function useLocalIdp(options: Partial<LocalIdpOptions> = {}) {
  const base = useFolder();
  const cacheFolder = join(base, 'portcullis');
  const idp = await startLocalIdp({ ...idpOptions, cacheFolder, ...options });
  afterAll(() => idp.close());
  const call = createCall(readFileSync(idp.certificateFile, 'utf8'));
  return { idp, cacheFolder, environment: { XDG_CACHE_HOME: base }, call };
}
