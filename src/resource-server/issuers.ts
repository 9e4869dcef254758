import { resumeKeySet } from '../keys/key-set.ts';
import type { KeySetEvent } from '../keys/key-set-options.ts';
import { readUnverifiedIssuer } from '../token/access-token.ts';
import type { CertificateBinding } from '../token/claims.ts';
import type { TokenCache } from '../token/token-cache.ts';
import type { Emit } from './events.ts';
import { createIssuers, type Issuers } from './issuer-list.ts';
import type { AnyServerOptions, ResourceServerEvent } from './options.ts';
import { readIssuerName, type TrustedIssuer } from './trusted-issuer.ts';

export interface IssuersParts {
  readonly certificates: CertificateBinding;
  readonly emit: Emit | undefined;
  readonly cache: TokenCache | undefined;
}

export function openIssuers(options: AnyServerOptions, { certificates, emit, cache }: IssuersParts): Issuers {
  const { issuer, issuers = [], keys, jwksUri, insecure, fetch, ca, keysStale, maxOpenIssuers } = options;
  const introspections = [options.introspection ?? []].flat();
  const single: TrustedIssuer | undefined =
    issuer === undefined
      ? undefined
      : {
          issuer: readIssuerName(issuer, insecure),
          ...(keys !== undefined && { keys }),
          ...(jwksUri !== undefined && { jwksUri }),
          ...(insecure !== undefined && { insecure }),
        };
  return createIssuers({
    issuers: single === undefined ? issuers : [single],
    rules: options,
    certificates,
    maxOpen: maxOpenIssuers,
    nameOf: (token, known) =>
      introspections.find((each) => each.handles(token))?.issuer ??
      cache?.issuerOf(token) ??
      readUnverifiedIssuer(token, known),
    openKeys: ({ issuer: name, jwksUri: place, insecure: isInsecure }, state) =>
      resumeKeySet(
        {
          issuer: name,
          ...(place !== undefined && { jwksUri: place }),
          ...(isInsecure !== undefined && { insecure: isInsecure }),
          ...(fetch !== undefined && { fetch }),
          ...(ca !== undefined && { ca }),
          ...(keysStale !== undefined && { staleSeconds: keysStale }),
          ...(emit !== undefined && { onEvent: (event) => emit(tellOf(name, event)) }),
        },
        state,
      ),
  });
}

function tellOf(issuer: string, event: KeySetEvent): ResourceServerEvent {
  return event.type === 'insecure' ? { type: 'insecure', issuer } : { type: 'keys', issuer, event };
}
