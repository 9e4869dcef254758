import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { settingTable } from '../../src/server/settings/setting-table.ts';
import { kustomization, manifest } from './manifest-schemas.ts';

const root = 'deploy/kubernetes';
const read = (path: string): unknown =>
  parse(readFileSync(join(root, path), 'utf8'), { strict: true, uniqueKeys: true });
const base = readdirSync(join(root, 'base')).filter((file) => file !== 'kustomization.yaml');

/** What is wrong with a document, in words. */
function listIssues(schema: v.GenericSchema, value: unknown): readonly string[] {
  const { issues } = v.safeParse(schema, value);
  return issues?.map((issue) => `${v.getDotPath(issue)}: ${issue.message}`) ?? [];
}

/** As kustomize lays a patch over a manifest: members of objects are merged, named list entries by their name. */
function patch(value: unknown, over: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(over)) {
    const isNamed = over.every((entry) => typeof entry?.name === 'string');
    if (!isNamed) return over;
    const names = over.map(({ name }) => name);
    const rest = over.filter(({ name }) => !value.some((entry) => entry.name === name));
    return [
      ...value.map((entry) =>
        names.includes(entry.name)
          ? patch(
              entry,
              over.find(({ name }) => name === entry.name),
            )
          : entry,
      ),
      ...rest,
    ];
  }
  if (typeof value !== 'object' || value === null || typeof over !== 'object' || over === null) return over;
  const merged: Record<string, unknown> = { ...value };
  for (const [name, member] of Object.entries(over))
    merged[name] = Object.hasOwn(merged, name) ? patch(merged[name], member) : member;
  return merged;
}

describe('manifests for Kubernetes', () => {
  it.each(base)('base/%s follows the API reference', (file) => {
    expect(listIssues(manifest, read(`base/${file}`))).toEqual([]);
  });

  it.each(['deployment.yaml', 'networkpolicy.yaml'])(
    'redis/%s laid over the base follows the API reference',
    (file) => {
      expect(listIssues(manifest, patch(read(`base/${file}`), read(`redis/${file}`)))).toEqual([]);
    },
  );

  it('the schemas are strict: a misspelt member is found', () => {
    const wrong = patch(read('base/deployment.yaml'), { spec: { replica: 3 } });
    expect(listIssues(manifest, wrong)).toHaveLength(1);
  });

  it.each(['base', 'redis'])(
    '%s/kustomization.yaml names files that exist, in words that old kustomize knows',
    (folder) => {
      const document = read(`${folder}/kustomization.yaml`);
      const { bases = [], resources = [], patchesStrategicMerge = [] } = v.parse(kustomization, document);
      for (const path of [...bases, ...resources, ...patchesStrategicMerge])
        expect(existsSync(join(root, folder, path)), path).toBe(true);
      if (folder === 'base') expect([...resources].sort()).toEqual([...base].sort());
    },
  );

  it('every variable is a setting, and a pod gets the time that its drain needs', () => {
    const { data } = read('base/configmap.yaml') as { readonly data: Readonly<Record<string, string>> }; // held to its schema above
    const known = new Set<unknown>(Object.values(settingTable).map(({ environment }) => environment));
    const names = Object.keys(data).filter((name) => !['IDP_DOMAIN', 'IDP_AUDIENCE'].includes(name));
    expect(names.filter((name) => !known.has(name))).toEqual([]);
    const text = readFileSync(join(root, 'base/deployment.yaml'), 'utf8');
    const grace = Number(/terminationGracePeriodSeconds: (\d+)/.exec(text)?.[1]);
    expect(grace).toBeGreaterThan(Number(data['DRAIN_DELAY']) + 10);
  });
});
