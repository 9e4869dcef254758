import { createDescribeIdentity, type DescribeIdentity } from '../../audit/identity.ts';
import { createNonces, type Nonces } from '../../dpop/nonce.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import type { Log } from '../observation/log.ts';
import type { Settings } from '../settings/settings.ts';

export interface OpenSecretsOptions {
  readonly settings: Settings;
  /** Reads the settings again. Throws if they are invalid. */
  readonly readAgain: () => Settings;
  readonly reloads: Reloads;
  readonly log: Log;
  /** For nonces that are required after a start, if the settings have no secret. */
  readonly startNonceSecret?: string | undefined;
}

/** Parts that depend on secrets. They follow the secrets at a reload. */
export interface OpenedSecrets {
  /** For the resource servers; empty if each has its own nonces. */
  readonly nonceOptions: { readonly nonces?: Nonces; readonly nonceDemand?: 'always' | 'after-start' };
  readonly describeIdentity: DescribeIdentity;
}

/** Opens the nonces and the identity of log lines, under the secrets of the settings. A reload also applies the settings of the log. */
export function openSecrets(options: OpenSecretsOptions): OpenedSecrets {
  const { settings, readAgain, reloads, log, startNonceSecret } = options;
  const nonces = openNonces(settings, startNonceSecret);
  let describeIdentity = createDescribeIdentity(settings.logIdentity, settings.logIdentitySecret);
  let current = settings;
  reloads.add(() => {
    const next = readAgain();
    log.select(next);
    const isChanged = (name: 'replayStore' | 'dpopNonceSecret' | 'logIdentitySecret'): boolean =>
      next[name] !== current[name];
    if (isChanged('replayStore')) log.write('warn', 'restart_needed', { setting: 'REPLAY_STORE' });
    if (isChanged('dpopNonceSecret') || isChanged('logIdentitySecret')) {
      if (next.dpopNonceSecret !== '') nonces?.rotate(next.dpopNonceSecret);
      describeIdentity = createDescribeIdentity(settings.logIdentity, next.logIdentitySecret);
      log.write('info', 'secrets_reloaded');
    }
    current = next;
  });
  const nonceDemand = settings.dpopNonce === 'required' ? 'always' : 'after-start';
  return {
    nonceOptions: nonces === undefined ? {} : { nonces, nonceDemand },
    describeIdentity: settings.logIdentity === 'off' ? () => undefined : (claims) => describeIdentity(claims),
  };
}

/** Nonces that are required always, or only after a start: under the secret of the settings, or of the primary process. */
function openNonces(
  { dpopNonce, dpopNonceSecret }: Settings,
  startSecret: string | undefined,
): RotatingNonces | undefined {
  if (dpopNonce === 'required' || dpopNonceSecret !== '') return createRotatingNonces(dpopNonceSecret);
  return startSecret === undefined ? undefined : createRotatingNonces(startSecret);
}

/** Seconds for which a nonce under the previous secret is accepted: the lifetime of the last one. */
const overlap = 240;

/** Nonces whose secret can be replaced. */
export interface RotatingNonces extends Nonces {
  /** Issues nonces under this secret. Nonces under the previous secret are accepted for their lifetime. */
  rotate(secret: string): void;
}

/** Creates them. Throws `TypeError` for a short secret. `now`: seconds since the epoch. */
export function createRotatingNonces(first: string, now = (): number => Date.now() / 1000): RotatingNonces {
  let secret = first;
  let current = createNonces({ secret });
  let previous: Nonces | undefined;
  let previousUntil = 0;
  return {
    issue: (at, generation) => current.issue(at, generation),
    check(nonce, at) {
      const verdict = current.check(nonce, at);
      if (verdict !== 'invalid' || previous === undefined || at >= previousUntil) return verdict;
      return previous.check(nonce, at) === 'invalid' ? 'invalid' : 'previous';
    },
    read(nonce, at) {
      const known = current.read(nonce, at);
      if (known !== undefined || previous === undefined || at >= previousUntil) return known;
      return previous.read(nonce, at);
    },
    rotate(next) {
      if (next === secret) return;
      const made = createNonces({ secret: next });
      previous = current;
      previousUntil = now() + overlap;
      current = made;
      secret = next;
    },
  };
}
