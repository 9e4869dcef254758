import { readFileSync } from 'node:fs';
import type { AnyServerOptions } from '../resource-server/options.ts';
import type { TrustedIssuer } from '../resource-server/trusted-issuer.ts';
import { createIntrospection, type Introspection } from '../token-status/introspection.ts';
import type { RuleIntrospection, Rules } from './rules/rules.ts';
import { RulesError } from './rules/rules-source.ts';

interface PreparedIntrospections {
  optionFor(issuers: readonly TrustedIssuer[]): Pick<AnyServerOptions, 'introspection'>;
  /** Differs if the introspection or its secret differs. */
  keyFor(issuers: readonly TrustedIssuer[]): string;
  adopt(): void;
}

/** Creates the introspections, which a reload reuses if neither options nor secret have changed. */
export function createIntrospections(): { prepare(entries: Rules['introspections']): PreparedIntrospections } {
  let current = new Map<string, Introspection>();
  return {
    prepare(entries) {
      const used = new Map<string, Introspection>();
      const keys = new Map<string, string>();
      for (const [issuer, { clientSecretFile, ...entry }] of entries) {
        const options = { ...entry, issuer, clientSecret: readSecret(clientSecretFile) };
        const key = JSON.stringify(options);
        keys.set(issuer, key);
        used.set(key, current.get(key) ?? open(issuer, options));
      }
      const keyFor = (issuers: readonly TrustedIssuer[]): string =>
        issuers.map(({ issuer }) => keys.get(issuer) ?? '').join('');
      return {
        keyFor,
        optionFor(issuers) {
          const introspection = used.get(keyFor(issuers));
          return introspection === undefined ? {} : { introspection };
        },
        adopt() {
          for (const [key, introspection] of current) if (!used.has(key)) introspection.close();
          current = used;
        },
      };
    },
  };
}

function open(
  issuer: string,
  options: Omit<RuleIntrospection, 'clientSecretFile'> & { clientSecret: string },
): Introspection {
  try {
    return createIntrospection({ ...options, issuer });
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : 'unknown';
    throw new RulesError(`The introspection of ${issuer} cannot be used: ${message}`, { cause });
  }
}

function readSecret(file: string): string {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    if (secret !== '') return secret;
  } catch {
    // The message names the file, and the reason does not help.
  }
  throw new RulesError(`clientSecretFile ${file} cannot be read, or is empty. Name a readable file with the secret.`);
}
