// The container inside @peculiar/x509 refuses to load without the three functions of the metadata proposal that it
// calls; they are all it needs, so the whole polyfill is not a dependency. Import this before @peculiar/x509.

const metadata = new WeakMap<object, Map<unknown, unknown>>();

function getOwnMetadata(key: unknown, target: object): unknown {
  return metadata.get(target)?.get(key);
}

function getMetadata(key: unknown, target: object): unknown {
  for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at)) {
    if (metadata.get(at)?.has(key)) return getOwnMetadata(key, at);
  }
  return undefined;
}

function defineMetadata(key: unknown, value: unknown, target: object): void {
  const own = metadata.get(target) ?? new Map<unknown, unknown>();
  metadata.set(target, own.set(key, value));
}

if (!('getMetadata' in Reflect)) Object.assign(Reflect, { getOwnMetadata, getMetadata, defineMetadata });
