import { createNonces, type Nonces } from '../../dpop/nonce.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import type { Log } from '../observation/log.ts';
import type { Settings } from '../settings/settings.ts';

/** The settings whose values may change while the service runs, if they come from files. */
export type Secrets = Pick<Settings, 'dpopNonceSecret' | 'logIdentitySecret' | 'replayStore'>;

/** What secrets are followed with. */
export interface FollowSecretsOptions {
  readonly secrets: Secrets;
  /** Reads the settings once more. Throws if they are wrong. */
  readonly readAgain: () => Secrets;
  readonly reloads: Reloads;
  readonly log: Log;
}

/** Seconds for which a nonce under the secret before is taken: as long as the last one that was given out. */
const overlap = 240;

/** Calls with the secrets when a reload has brought others. */
export function followSecrets(options: FollowSecretsOptions, onChange: (secrets: Secrets) => void): void {
  const { readAgain, reloads, log } = options;
  let { secrets } = options;
  reloads.add(() => {
    const next = readAgain();
    const isChanged = (name: keyof Secrets): boolean => next[name] !== secrets[name];
    if (isChanged('replayStore')) log.write('warn', 'restart_needed', { setting: 'REPLAY_STORE' });
    if (isChanged('dpopNonceSecret') || isChanged('logIdentitySecret')) {
      onChange(next);
      log.write('info', 'secrets_reloaded');
    }
    secrets = next;
  });
}

/** Nonces whose secret can be replaced. */
export interface RotatingNonces extends Nonces {
  /** From now on nonces are made under this secret; those under the one before are taken for a while. */
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
