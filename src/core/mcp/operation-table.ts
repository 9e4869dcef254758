import { Refused } from '../refused.ts';
import { type Operation, type OperationKind, operationKinds } from './operations.ts';
import { normalizeUri, readUri, readUriStart } from './resource-uri.ts';

/** Entries by the name of an operation, or by a prefix of it with `*` at its end. */
export type OperationEntries<E> = Readonly<Record<string, E>>;

/** Entries for each kind of operation. */
export type OperationMaps<E> = { readonly [K in OperationKind]?: OperationEntries<E> };

/** Finds the entry of an operation; a refusal for a URI that two servers could read differently. */
export type FindEntry<E> = (operation: Operation) => E | Refused | undefined;

interface Key<E> {
  /** Without its `*`. */
  readonly text: string;
  readonly isPrefix: boolean;
  readonly entry: E;
}

/**
 * Builds the lookup of all maps: it finds an equal name, otherwise the longest prefix. Throws `TypeError` for a key that is
 * neither a name nor a prefix, and for a key of `resources` that is not in normal form.
 */
export function createOperationTable<E>(maps: OperationMaps<E>): FindEntry<E> {
  const tables = new Map(
    operationKinds.map((kind) => {
      const keys = Object.entries(maps[kind] ?? {}).map(([key, entry]) => readKey(kind, key, entry));
      const comparesUris = kind === 'resources' && keys.some(({ text }) => text !== '');
      const { find } = createLookup(keys, (name, prefix) => name.startsWith(prefix));
      return [kind, comparesUris ? createUriTable(keys) : ({ name = '' }: Operation) => find(name)] as const;
    }),
  );
  return (operation) => (operation.name === undefined ? undefined : tables.get(operation.kind)?.(operation));
}

function readKey<E>(kind: OperationKind, key: string, entry: E): Key<E> {
  const star = key.indexOf('*');
  if (key === '' || (star >= 0 && star < key.length - 1)) {
    throw new TypeError(`${kind}: "${key}" is neither a name nor a prefix with one * at its end`);
  }
  return { text: star < 0 ? key : key.slice(0, -1), isPrefix: star >= 0, entry };
}

function createLookup<E>(keys: readonly Key<E>[], begins: (name: string, prefix: string) => boolean) {
  const exact = new Map(keys.filter(({ isPrefix }) => !isPrefix).map(({ text, entry }) => [text, entry]));
  const prefixes = keys.filter(({ isPrefix }) => isPrefix).toSorted((a, b) => b.text.length - a.text.length);
  return {
    exact,
    find: (name: string): E | undefined => exact.get(name) ?? prefixes.find(({ text }) => begins(name, text))?.entry,
  };
}

/** Parts at the end that a server may ignore: `path.resolve` removes the slash, `fileURLToPath` the others, many trim spaces. */
const ignoredParts = [/#.*$/s, /\?.*$/s, /\/$/];

/** Compares URIs in every form in which a server could read them: all forms must have one entry. */
function createUriTable<E>(keys: readonly Key<E>[]): FindEntry<E> {
  const decodedKeys = keys.map((key) => ({ ...key, text: readUriKey(key) }));
  const names = new Set(decodedKeys.map(({ text, isPrefix }) => `${text}${isPrefix ? '*' : ''}`));
  if (names.size < keys.length) throw new TypeError('resources: two keys are one URI after decoding');
  const { find } = createLookup(keys, beginsUri);
  const decoded = createLookup(decodedKeys, beginsUri);
  const isHidden = (entry: E | undefined, uri: string): boolean => {
    let rest = uri;
    return ignoredParts.some((part) => {
      rest = rest.replace(part, '').trimEnd();
      return (decoded.exact.get(rest) ?? entry) !== entry;
    });
  };
  return ({ name = '', isTemplate = false }) => {
    const [start = ''] = isTemplate ? name.split('{', 1) : [name];
    const uri = start === name ? readUri(name) : readUriStart(start);
    const entry = uri && find(uri.href);
    if (uri !== undefined && find(start) === entry && decoded.find(uri.decoded) === entry) {
      if (start !== name || !isHidden(entry, uri.decoded)) return entry;
    }
    return new Refused('malformed_message', undefined, { compare: () => ({ expected: normalizeUri(start) }) });
  };
}

/** A prefix that ends after the authority does not match a longer authority. */
function beginsUri(uri: string, prefix: string): boolean {
  if (!uri.startsWith(prefix)) return false;
  return prefix === '' || prefix.endsWith('/') || '/?#'.includes(uri.charAt(prefix.length));
}

/** Returns the decoded form of a key. Throws `TypeError` for a key that could never match. */
function readUriKey({ text, isPrefix }: Key<unknown>): string {
  if (isPrefix && text === '') return '';
  const uri = isPrefix ? readUriStart(text) : readUri(text);
  if (uri?.href !== text) {
    throw new TypeError(`resources: "${text}" is not in normal form; write "${normalizeUri(text) ?? 'scheme://…'}"`);
  }
  if (isPrefix && !/\/$|^[^:]*:\/\/[^/?#]+$/.test(text)) {
    throw new TypeError(`resources: the prefix "${text}*" ends within a segment; write "${text}/*"`);
  }
  return uri.decoded;
}
