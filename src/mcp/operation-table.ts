import { type Operation, type OperationKind, operationKinds } from './operations.ts';

/** Entries by the name of an operation, or by a prefix of it with `*` at its end. */
export type OperationEntries<E> = Readonly<Record<string, E>>;

/** Entries for each kind of operation. */
export type OperationMaps<E> = { readonly [K in OperationKind]?: OperationEntries<E> };

/** A URI that is encoded more often is refused. */
const maxDecodings = 3;

/**
 * Builds the lookup of all maps: it finds an equal name, otherwise the longest prefix. Throws `TypeError` for a key that is
 * neither a name nor a prefix.
 */
export function createOperationTable<E>(maps: OperationMaps<E>): (operation: Operation) => E | undefined {
  const tables = new Map(operationKinds.map((kind) => [kind, createTable(kind, maps[kind] ?? {})] as const));
  return ({ kind, name }) => (name === undefined ? undefined : tables.get(kind)?.(name));
}

function createTable<E>(kind: OperationKind, entries: OperationEntries<E>): (name: string) => E | undefined {
  const exact = new Map<string, E>();
  const prefixes: (readonly [prefix: string, entry: E])[] = [];
  for (const [key, entry] of Object.entries(entries)) {
    const star = key.indexOf('*');
    if (key === '' || (star >= 0 && star < key.length - 1)) {
      throw new TypeError(`${kind}: "${key}" is neither a name nor a prefix with one * at its end`);
    }
    if (star < 0) exact.set(key, entry);
    else prefixes.push([key.slice(0, -1), entry]);
  }
  prefixes.sort(([a], [b]) => b.length - a.length);
  return (name) => {
    const found = exact.get(name);
    if (found !== undefined || (kind === 'resources' && isAmbiguousUri(name))) return found;
    return prefixes.find(([prefix]) => name.startsWith(prefix))?.[1];
  };
}

/** Reports whether a server could read the path of a URI as another path, so that a prefix proves nothing. */
export function isAmbiguousUri(uri: string): boolean {
  let path = uri.replace(/^[a-z][a-z\d+.-]*:(?:\/\/[^/?#\\]*)?/i, '').replace(/[?#].*$/s, '');
  for (let decodings = 0; ; decodings++) {
    if (/\\|\/\/|(?:^|\/)\.{1,2}(?:\/|$)/.test(path)) return true;
    const decoded = path.replace(/%([0-7][\da-f])/gi, (_escape, digits) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    );
    if (decoded === path) return false;
    if (decodings === maxDecodings) return true;
    path = decoded;
  }
}
