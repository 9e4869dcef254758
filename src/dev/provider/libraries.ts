import { createRequire } from 'node:module';
import { loadX509 } from '../../certificate/localhost-certificate.ts';
import { errorCode, LocalIdpFailure } from './failure.ts';

/** The optional packages that only the local identity provider needs. */
export interface Libraries {
  readonly oidc: typeof import('oidc-provider');
  readonly x509: typeof import('@peculiar/x509');
}

// The majors that this package is made for: a newer one would be refused by npm, or would not fit.
const howToInstall =
  'The local identity provider needs two optional packages. Install them: npm install --save-dev oidc-provider@9 @peculiar/x509@2';

let loading: Promise<Libraries> | undefined;

/** Loads the optional packages, once; rejects with `LocalIdpFailure` where they are not installed. */
export function loadLibraries(): Promise<Libraries> {
  loading ??= loadOptional(async () => ({ oidc: await loadOidc(), x509: await loadX509() }));
  return loading;
}

/** Runs an import of optional packages and says what to install when one is missing. */
export async function loadOptional<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if (errorCode(cause) !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw new LocalIdpFailure(howToInstall, { cause });
  }
}

/** What to install, when one of the optional packages is missing. Looks for them without loading them. */
export function describeMissing(): string | undefined {
  const { resolve } = createRequire(import.meta.url);
  const isMissing = (name: string): boolean => {
    try {
      resolve(name);
      return false;
    } catch (error) {
      // Any other error comes from a package that is there, and has no entry for `require`.
      return errorCode(error) === 'MODULE_NOT_FOUND';
    }
  };
  return ['oidc-provider', '@peculiar/x509'].some(isMissing) ? howToInstall : undefined;
}

/** Keeps the provider's own notices off the console until the returned function is called: they speak of production. */
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

/** What there is to say of this version of Node; the provider's own words were muted. */
export function describeRuntime(version: string): readonly string[] {
  return Number.parseInt(version, 10) >= 22
    ? []
    : [`The packages of the local identity provider are made for Node 22 and later; this is Node ${version}.`];
}

async function loadOidc(): Promise<Libraries['oidc']> {
  const unmute = muteNotices();
  try {
    return await import('oidc-provider');
  } finally {
    unmute();
  }
}
