import { createKeySet } from '../keys/key-set.ts';
import type { CertificateBinding } from '../token/confirmation.ts';
import type { Emit } from './events.ts';
import { createIssuers, type Issuers } from './issuer-list.ts';
import { readIssuerName } from './issuer-name.ts';
import type { ResourceServerOptions } from './options.ts';

/** Makes the issuers that the options name, and the key sets that nobody else has made. */
export function openIssuers(
  options: ResourceServerOptions,
  certificates: CertificateBinding,
  emit: Emit | undefined,
): Issuers {
  const { issuer, issuers = [], keys, fetch, ca, keysStale } = options;
  const single =
    issuer === undefined ? undefined : { issuer: readIssuerName(issuer), ...(keys !== undefined && { keys }) };
  return createIssuers({
    issuers: single === undefined ? issuers : [single],
    rules: options,
    certificates,
    openKeys: (name) =>
      createKeySet({
        issuer: name,
        ...(fetch !== undefined && { fetch }),
        ...(ca !== undefined && { ca }),
        ...(keysStale !== undefined && { staleSeconds: keysStale }),
        ...(emit !== undefined && { onEvent: (event) => emit({ type: 'keys', issuer: name, event }) }),
      }),
  });
}
