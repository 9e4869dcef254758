import { createNonces, type Nonces } from '../../core/dpop/nonce.ts';
import type { DpopOptions } from '../../core/resource-server/options.ts';
import { createDisguise, type Disguise } from '../../core/shown-comparison.ts';
import { createDescribeIdentity, type DescribeIdentity } from '../observation/audit/identity.ts';
import type { ServiceOptions } from './service.ts';

/** Opens the nonces and the identity of log lines, under the secrets of the settings. A reload also applies the settings of the log. */
export function openSecrets(options: ServiceOptions) {
  const { settings, readAgain, reloads, log } = options;
  const { dpopNonce, dpopNonceSecret, logIdentity } = settings;
  // Required always, or only after a start. With `required`, the settings have a secret.
  const nonces = dpopNonceSecret === '' ? undefined : createRotatingNonces(dpopNonceSecret);
  let describeIdentity = createDescribeIdentity(logIdentity, settings.logIdentitySecret);
  const mode = logIdentity === 'plain' ? 'plain' : 'hashed';
  let disguise = createDisguise(mode, settings.logIdentitySecret);
  let current = settings;
  reloads.add(() => {
    const next = readAgain();
    log.select(next);
    const { replayStore, dpopNonceSecret: nonceSecret, logIdentitySecret } = current;
    if (next.replayStore !== replayStore) log.write('warn', 'restart_needed', { setting: 'REPLAY_STORE' });
    if (next.dpopNonceSecret !== nonceSecret || next.logIdentitySecret !== logIdentitySecret) {
      if (next.dpopNonceSecret !== '') nonces?.rotate(next.dpopNonceSecret);
      describeIdentity = createDescribeIdentity(logIdentity, next.logIdentitySecret);
      disguise = createDisguise(mode, next.logIdentitySecret);
      log.write('info', 'secrets_reloaded');
    }
    current = next;
  });
  const nonceDemand: DpopOptions['nonceDemand'] = dpopNonce === 'required' ? 'always' : 'after-start';
  const describe: DescribeIdentity = (claims) => describeIdentity(claims);
  return {
    /** For the resource servers; empty if each has its own nonces. */
    nonceOptions: { ...(nonces !== undefined && { nonces, nonceDemand }) },
    /** For log lines; `undefined` if they name no identity. */
    describeIdentity: logIdentity === 'off' ? undefined : describe,
    /** For values of conditions in log lines. */
    disguise: ((text, isSecret) => disguise(text, isSecret)) as Disguise,
  };
}

/** Seconds for which a nonce under the previous secret is accepted: the lifetime of the last one. */
const overlap = 240;

/**
 * Creates nonces whose secret can be replaced; those under the previous secret are accepted for their lifetime. Throws
 * `TypeError` for a short secret. `now`: seconds since the epoch.
 */
export function createRotatingNonces(
  first: string,
  now = (): number => Date.now() / 1000,
): Nonces & { rotate(secret: string): void } {
  let secret = first;
  let current = createNonces({ secret });
  let previous: { readonly nonces: Nonces; readonly until: number } | undefined;
  const previousAt = (at: number): Nonces | undefined =>
    previous !== undefined && at < previous.until ? previous.nonces : undefined;
  return {
    issue: (at, generation) => current.issue(at, generation),
    check(nonce, at) {
      const verdict = current.check(nonce, at);
      if (verdict !== 'invalid') return verdict;
      const earlier = previousAt(at)?.check(nonce, at) ?? 'invalid';
      return earlier === 'invalid' ? 'invalid' : 'previous';
    },
    read: (nonce, at) => current.read(nonce, at) ?? previousAt(at)?.read(nonce, at),
    rotate(next) {
      if (next === secret) return;
      const nonces = createNonces({ secret: next });
      previous = { nonces: current, until: now() + overlap };
      current = nonces;
      secret = next;
    },
  };
}
