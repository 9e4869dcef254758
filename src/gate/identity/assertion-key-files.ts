import { readRegularFile } from '../../server/lifecycle/file.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { RulesError } from '../rules/rules-source.ts';
import type { AssertionKeyFiles, KeyFile } from './assertion-keys.ts';

const maxBytes = 64 * 1024;

/** Reads the PEM files of assertion keys; `undefined` if no setting names one. Throws `RulesError` for an unreadable file. */
export function readAssertionKeys(settings: Settings): AssertionKeyFiles | undefined {
  const { assertionKey, assertionKeysPublished, spellings } = settings;
  if (assertionKey === '' && assertionKeysPublished.length === 0) return undefined;
  const read = (name: string, path: string): KeyFile => {
    const setting = spellings[name] ?? name;
    try {
      return { setting, pem: readRegularFile(path, maxBytes).toString('latin1') };
    } catch (cause) {
      throw new RulesError(`${setting}: the file cannot be read. Name a readable PEM file.`, { cause });
    }
  };
  return {
    signing: assertionKey === '' ? undefined : read('ASSERTION_KEY', assertionKey),
    published: assertionKeysPublished.map((path) => read('ASSERTION_KEYS_PUBLISHED', path)),
  };
}
