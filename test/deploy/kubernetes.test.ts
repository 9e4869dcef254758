import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import * as v from 'valibot';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readRules } from '../../src/gate/rules/rules-reader.ts';
import { settingTable } from '../../src/server/settings/setting-table.ts';
import { readCodeBlocks } from '../support/pages.ts';
import { words } from '../support/words.ts';
import { merge, readYaml, render } from './kustomize.ts';
import { manifest } from './manifest-schemas.ts';

const root = 'deploy/kubernetes';
/** An overlay with the component, as a user writes it. */
const monitored = mkdtempSync(join(root, '.monitored-'));
writeFileSync(
  join(monitored, 'kustomization.yaml'),
  JSON.stringify({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: ['../base'],
    components: ['../monitoring'],
  }),
);
afterAll(() => rmSync(monitored, { recursive: true }));

/** Lists the defects of a document in words. */
function listIssues(value: unknown): readonly string[] {
  const { issues } = v.safeParse(manifest, value);
  return issues?.map((issue) => `${v.getDotPath(issue)}: ${issue.message}`) ?? [];
}

type Manifest = Readonly<Record<string, unknown>>;
const find = (manifests: readonly Manifest[], kind: string, name?: string): Manifest =>
  manifests.find((each) => each['kind'] === kind && (name === undefined || JSON.stringify(each).includes(name))) ?? {};
const dataOf = (manifests: readonly Manifest[]): Readonly<Record<string, string>> =>
  find(manifests, 'ConfigMap')['data'] as Readonly<Record<string, string>>; // validated by its schema

describe('rendered manifests', () => {
  const common = words(`
    ConfigMap Deployment HorizontalPodAutoscaler NetworkPolicy PodDisruptionBudget Service
  `);

  it.each([
    ['base', join(root, 'base'), common],
    ['redis', join(root, 'redis'), common],
    ['gate', join(root, 'gate'), ['ConfigMap', ...common]],
    ['base with monitoring', monitored, [...common, 'PrometheusRule', 'ServiceMonitor']],
  ])('%s → follows the API reference', (_, folder, kinds) => {
    const manifests = render(folder);
    expect(manifests.flatMap(listIssues)).toEqual([]);
    expect(manifests.map(({ kind }) => kind).toSorted()).toEqual(kinds.toSorted());
  });

  it('a misspelt member → found', () => {
    const wrong = merge(readYaml(join(root, 'base/deployment.yaml')), { spec: { replica: 3 } });
    expect(listIssues(wrong)).toHaveLength(1);
  });

  it.each(['base', 'gate'])('%s → its selectors match its pods only', (folder) => {
    const manifests = render(join(root, folder));
    const name = folder === 'base' ? 'portcullis' : 'portcullis-gate';
    const selectors = [...JSON.stringify(manifests).matchAll(/"app\.kubernetes\.io\/name":"([^"]+)"/g)];
    expect(new Set(selectors.map(([, value]) => value))).toEqual(new Set([name]));
    expect(find(manifests, 'HorizontalPodAutoscaler')['spec']).toMatchObject({ scaleTargetRef: { name } });
    // The autoscaler sets the number of pods, and a second value would reset it.
    expect(find(manifests, 'Deployment')['spec']).not.toHaveProperty('replicas');
  });

  it('redis → opens the ports of Redis and of sentinels', () => {
    const text = JSON.stringify(find(render(join(root, 'redis')), 'NetworkPolicy'));
    expect(text).toContain('"port":6379');
    expect(text).toContain('"port":26379');
  });

  it.each(['base', 'gate'])(
    '%s → every variable is a setting, and a pod gets the time that its drain needs',
    (folder) => {
      const manifests = render(join(root, folder));
      const data = dataOf(manifests);
      const known = new Set<unknown>(Object.values(settingTable).map(({ environment }) => environment));
      const names = Object.keys(data).filter((name) => !['IDP_DOMAIN', 'IDP_AUDIENCE'].includes(name));
      expect(names.filter((name) => !known.has(name))).toEqual([]);
      const [, grace] = /"terminationGracePeriodSeconds":(\d+)/.exec(JSON.stringify(manifests)) ?? [];
      expect(Number(grace)).toBeGreaterThan(Number(data['DRAIN_DELAY']) + 10);
    },
  );
});

describe('the gate', () => {
  const manifests = render(join(root, 'gate'));

  it('its rules are valid, and mounted at RULES', async () => {
    const text = readFileSync(join(root, 'gate/rules.yaml'), 'utf8');
    expect(await readRules({ name: 'rules.yaml', text })).toMatchObject({ kind: 'rules' });
    expect(find(manifests, 'ConfigMap', 'portcullis-rules')['data']).toEqual({ 'rules.yaml': text });
    const deployment = JSON.stringify(find(manifests, 'Deployment'));
    expect(deployment).toContain('"args":["gate"]');
    expect(deployment).toContain(`"mountPath":"${(dataOf(manifests)['RULES'] ?? '').replace('/rules.yaml', '')}"`);
    expect(deployment).toContain('"configMap":{"name":"portcullis-rules-gate"}');
  });
});

describe('the sidecar of docs/gate.md', () => {
  const [block] = readCodeBlocks('docs/gate.md').filter(({ language }) => language === 'yaml');
  const { spec } = parse(block?.text ?? '') as { readonly spec: PodSpec };
  const [api, gate] = spec.containers;
  const environment = new Map(gate?.env.map(({ name, value }) => [name, value]));

  it('every variable is a setting; the upstream is the API on loopback; the rules are mounted', () => {
    const known = new Set<unknown>(Object.values(settingTable).map((row) => row.environment));
    expect([...environment.keys()].filter((name) => !known.has(name))).toEqual([]);
    const of = new Map(api?.env.map(({ name, value }) => [name, value]));
    expect(environment.get('UPSTREAM')).toBe(`http://${of.get('HOST')}:${of.get('PORT')}`);
    expect(dirname(environment.get('RULES') ?? '')).toBe(gate?.volumeMounts[0]?.mountPath);
  });
});

interface PodSpec {
  readonly containers: readonly {
    readonly env: readonly { readonly name: string; readonly value: string }[];
    readonly volumeMounts: readonly { readonly mountPath: string }[];
  }[];
}

describe('monitoring', () => {
  it('PrometheusRule → the alert rules that promtool tests', () => {
    const { spec } = readYaml(join(root, 'monitoring/prometheusrule.yaml')) as { readonly spec: unknown };
    expect(spec).toEqual(readYaml('deploy/prometheus/portcullis.rules.yml'));
  });

  it('job of the ServiceMonitor → the job of the alerts', () => {
    const manifests = render(join(root, relative(root, monitored)));
    const label = (find(manifests, 'ServiceMonitor')['spec'] as { readonly jobLabel: string }).jobLabel;
    expect(find(manifests, 'Service')['metadata']).toMatchObject({ labels: { [label]: 'portcullis' } });
  });
});
