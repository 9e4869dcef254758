import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import * as v from 'valibot';
import { parse } from 'yaml';
import { kustomization } from './manifest-schemas.ts';

/** A manifest, or a part of one. */
type Json = Readonly<Record<string, unknown>>;

/** Parses a YAML file strictly. */
export function readYaml(path: string): unknown {
  return parse(readFileSync(path, 'utf8'), { strict: true, uniqueKeys: true });
}

/** Renders a folder as `kubectl kustomize` does, for the members that the schema of kustomizations allows. */
export function render(folder: string): readonly Json[] {
  const {
    resources = [],
    components = [],
    patches = [],
    labels = [],
    ...rest
  } = v.parse(kustomization, readYaml(join(folder, 'kustomization.yaml')));
  const generated = (rest.configMapGenerator ?? []).map(({ name, files }) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: Object.fromEntries(files.map((file) => [basename(file), readFileSync(join(folder, file), 'utf8')])),
  }));
  const loaded = [...resources, ...components].flatMap(
    (path) => (path.endsWith('.yaml') ? [readYaml(join(folder, path)) as Json] : render(join(folder, path))), // a manifest is an object
  );
  const patched = patches.reduce<readonly Json[]>((all, { path }) => {
    const over = readYaml(join(folder, path)) as Json; // a manifest is an object
    const isTarget = (each: Json): boolean => each['kind'] === over['kind'] && nameOf(each) === nameOf(over);
    if (!all.some(isTarget)) throw new Error(`${folder}/${path} matches no manifest`);
    return all.map((each) => (isTarget(each) ? (merge(each, over) as Json) : each));
  }, loaded);
  const named = suffixNames([...patched, ...generated], rest.nameSuffix ?? '');
  return labels.reduce(
    (all, { pairs, includeSelectors = false }) => all.map((each) => addLabels(each, pairs, includeSelectors)),
    named,
  );
}

function nameOf(manifest: Json): unknown {
  return (manifest['metadata'] as Json)['name']; // every manifest has metadata
}

/** A strategic merge: objects by member, named list entries by name. `null` removes a member. */
export function merge(value: unknown, over: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(over) && over.every((entry) => typeof entry?.name === 'string')) {
    const names = new Set(over.map(({ name }) => name));
    const added = over.map((entry) => merge(value.find(({ name }) => name === entry.name) ?? {}, entry));
    return [...added, ...value.filter(({ name }) => !names.has(name))];
  }
  if (!isObject(value) || !isObject(over)) return over;
  const entries = Object.entries(over).map(([name, member]) => [name, merge(value[name], member)]);
  const merged: Json = { ...value, ...Object.fromEntries(entries) };
  return Object.fromEntries(Object.entries(merged).filter(([, member]) => member !== null));
}

/** Renames manifests, and references to them. */
function suffixNames(manifests: readonly Json[], suffix: string): readonly Json[] {
  const names = new Set(manifests.map(nameOf));
  const rename = (value: unknown, parent: string): unknown => {
    if (Array.isArray(value)) return value.map((entry) => rename(entry, parent));
    if (!isObject(value)) return value;
    const isReference = ['metadata', 'configMapRef', 'configMap', 'scaleTargetRef'].includes(parent);
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) =>
        isReference && name === 'name' && names.has(member)
          ? [name, `${member}${suffix}`]
          : [name, rename(member, name)],
      ),
    );
  };
  return manifests.map((manifest) => rename(manifest, '') as Json); // objects stay objects
}

function addLabels(manifest: Json, pairs: Json, includeSelectors: boolean): Json {
  const labelled = merge(manifest, { metadata: { labels: pairs } }) as Json; // objects stay objects
  if (!includeSelectors) return labelled;
  const add = (value: unknown, parent: string): unknown => {
    if (Array.isArray(value)) return value.map((entry) => add(entry, parent));
    if (!isObject(value)) return value;
    const isService = parent === 'spec' && manifest['kind'] === 'Service';
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        // Selectors of namespaces are not about these pods.
        const isSelector = name === 'matchLabels' && parent !== 'namespaceSelector';
        const isTemplate = name === 'labels' && parent === 'metadata';
        if ((isSelector || isTemplate || (isService && name === 'selector')) && isObject(member)) {
          return [name, { ...member, ...pairs }];
        }
        return [name, add(member, name)];
      }),
    );
  };
  return add(labelled, '') as Json; // objects stay objects
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
