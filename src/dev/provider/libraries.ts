import { codeOf } from '../../core/shown-text.ts';
import { loadX509 } from '../../testing/certificate/self-signed.ts';
import { LocalIdpFailure } from './failure.ts';

/** The optional packages that only the local identity provider needs. */
export type Libraries = Readonly<{ oidc: typeof import('oidc-provider'); x509: typeof import('@peculiar/x509') }>;

// The supported major versions.
const howToInstall =
  'The local identity provider needs two optional packages: npm install --save-dev oidc-provider@9 @peculiar/x509@2 installs them';

let loading: Promise<Libraries> | undefined;

/** Loads the optional packages once. Rejects with `LocalIdpFailure` if they are not installed. */
export function loadLibraries(): Promise<Libraries> {
  loading ??= loadOptional(async () => ({ oidc: await loadOidc(), x509: await loadX509() }));
  return loading;
}

export async function loadOptional<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if (codeOf(cause) !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw new LocalIdpFailure(howToInstall, cause);
  }
}

/** Suppresses the provider's notices about production until the returned function is called. */
export function muteNotices(): () => void {
  const target: Pick<Console, 'info' | 'warn'> = console;
  const { info, warn } = target;
  const unlessNotice =
    (write: typeof info): typeof info =>
    (...parts) => {
      if (!String(parts[0]).includes('oidc-provider ')) write(...parts);
    };
  target.info = unlessNotice(info);
  target.warn = unlessNotice(warn);
  return () => {
    target.info = info;
    target.warn = warn;
  };
}

/** Notices about this version of Node. The provider's own notices are suppressed. */
export function describeRuntime(version: string): readonly string[] {
  return Number.parseInt(version, 10) >= 22
    ? []
    : [`The packages of the provider support Node 22 and later; this is Node ${version}.`];
}

async function loadOidc(): Promise<Libraries['oidc']> {
  const unmute = muteNotices();
  try {
    return await import('oidc-provider');
  } finally {
    unmute();
  }
}
