import type { Nonces } from '../../dpop/nonce.ts';
import { createDescribeIdentity, type DescribeIdentity } from '../observation/identity.ts';
import type { Settings } from '../settings/settings.ts';
import { createRotatingNonces, type FollowSecretsOptions, followSecrets, type RotatingNonces } from './secrets.ts';

/** What secrets are opened with. */
export interface OpenSecretsOptions extends Pick<FollowSecretsOptions, 'readAgain' | 'reloads' | 'log'> {
  readonly settings: Settings;
  /** For nonces that are asked for after a start, if the settings have no secret. */
  readonly startNonceSecret?: string | undefined;
}

/** What is made under secrets. It follows them when a reload brings others. */
export interface OpenedSecrets {
  /** For the resource servers; empty if each has nonces of its own. */
  readonly nonceOptions: { readonly nonces?: Nonces; readonly nonceDemand?: 'always' | 'after-start' };
  readonly describeIdentity: DescribeIdentity;
}

/** Opens what every command makes under secrets. */
export function openSecrets(options: OpenSecretsOptions): OpenedSecrets {
  const { settings, readAgain, reloads, log, startNonceSecret } = options;
  const nonces = openNonces(settings, startNonceSecret);
  let describeIdentity = createDescribeIdentity(settings.logIdentity, settings.logIdentitySecret);
  followSecrets({ secrets: settings, readAgain, reloads, log }, (secrets) => {
    if (secrets.dpopNonceSecret !== '') nonces?.rotate(secrets.dpopNonceSecret);
    describeIdentity = createDescribeIdentity(settings.logIdentity, secrets.logIdentitySecret);
  });
  const nonceDemand = settings.dpopNonce === 'required' ? 'always' : 'after-start';
  return {
    nonceOptions: nonces === undefined ? {} : { nonces, nonceDemand },
    describeIdentity: (claims) => describeIdentity(claims),
  };
}

/** Nonces that are always demanded, or only after a start: under the secret of the settings, else of the primary process. */
function openNonces(
  { dpopNonce, dpopNonceSecret }: Settings,
  startSecret: string | undefined,
): RotatingNonces | undefined {
  if (dpopNonce === 'required' || dpopNonceSecret !== '') return createRotatingNonces(dpopNonceSecret);
  return startSecret === undefined ? undefined : createRotatingNonces(startSecret);
}
