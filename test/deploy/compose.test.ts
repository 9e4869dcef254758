import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { afterAll, describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';

import { settingTable } from '../../src/server/settings/setting-table.ts';
import { runCommand } from '../support/command-runs.ts';
import { useUpstream } from '../support/gate-edge.ts';
import { send } from '../support/http-client.ts';
import { openService } from '../support/open-service.ts';

const file = 'deploy/compose/compose.yaml';

/** Members of the Compose Specification that the file uses, and no other. */
const mount = v.strictObject({
  type: v.literal('bind'),
  source: v.string(),
  target: v.pipe(v.string(), v.startsWith('/')),
  read_only: v.boolean(),
});
const serviceSchema = v.strictObject({
  image: v.string(),
  command: v.optional(v.array(v.string())),
  environment: v.optional(v.record(v.pipe(v.string(), v.regex(/^[A-Z_]+$/)), v.string())),
  volumes: v.optional(v.array(mount)),
  ports: v.optional(v.array(v.pipe(v.string(), v.regex(/^\d+:\d+$/)))),
  networks: v.array(v.string()),
  depends_on: v.optional(v.array(v.string())),
  read_only: v.optional(v.boolean()),
  cap_drop: v.optional(v.array(v.string())),
  security_opt: v.optional(v.array(v.string())),
  stop_grace_period: v.optional(v.pipe(v.string(), v.regex(/^\d+s$/))),
  restart: v.optional(v.picklist(['no', 'always', 'on-failure', 'unless-stopped'])),
});
const composeSchema = v.strictObject({
  name: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]*$/)),
  services: v.record(v.string(), serviceSchema),
  networks: v.record(v.string(), v.strictObject({ internal: v.optional(v.boolean()) })),
});

const document = parseDocument(readFileSync(file, 'utf8'), { strict: true, uniqueKeys: true });
const compose = v.parse(composeSchema, document.toJS());
const { gate, api, redis } = compose.services;
const environment = gate?.environment ?? {};

describe(file, () => {
  it('is YAML without problems, and names only services and networks that it has', () => {
    expect([...document.errors, ...document.warnings]).toEqual([]);
    for (const { networks, depends_on = [] } of Object.values(compose.services)) {
      expect(Object.keys(compose.networks)).toEqual(expect.arrayContaining(networks));
      expect(Object.keys(compose.services)).toEqual(expect.arrayContaining(depends_on));
    }
  });

  it('every variable of the gate is a setting', () => {
    const known = new Set<unknown>(Object.values(settingTable).map((row) => row.environment));
    expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
  });

  it('addresses name its services; port and folder match the image and RULES', () => {
    for (const name of ['UPSTREAM', 'REPLAY_STORE']) {
      expect(Object.keys(compose.services)).toContain(new URL(environment[name] ?? '').hostname);
    }
    const [, port] = /^EXPOSE (\d+)/m.exec(readFileSync('deploy/image/Dockerfile', 'utf8')) ?? [];
    expect(gate?.ports).toEqual([`8000:${port}`]);
    expect(gate?.volumes).toEqual([expect.objectContaining({ target: environment['RULES'], read_only: true })]);
  });

  it('only the gate can reach the API and Redis', () => {
    for (const each of [api, redis]) expect([each?.ports, each?.networks]).toEqual([undefined, ['inside']]);
    expect(compose.networks['inside']).toEqual({ internal: true });
  });

  it('the gate may drain before it is killed', () =>
    expect(Number.parseInt(gate?.stop_grace_period ?? '', 10)).toBeGreaterThan(
      Number(environment['DRAIN_DELAY']) + 10,
    ));

  it('its rules are valid', async () => {
    const rules = join(dirname(file), gate?.volumes?.[0]?.source ?? '');
    expect(await runCommand(['rules', 'check', rules], {})).toMatchObject({ status: 0, stderr: '' });
  });
});

describe('the gate with its settings and rules', async () => {
  const upstream = await useUpstream();
  const { REPLAY_STORE: _redis, ...others } = environment;
  const running = await openService({
    command: gate?.command?.[0] === 'gate' ? 'gate' : 'serve',
    environment: {
      ...others,
      RULES: join(dirname(file), gate?.volumes?.[0]?.source ?? ''),
      UPSTREAM: `http://${upstream.address}`,
      DRAIN_DELAY: '0',
      NO_PROXY: '',
      HTTPS_PROXY: 'http://127.0.0.1:1',
    },
  });
  afterAll(() => running.stop());

  it('the open path → the upstream; any other without a token → 401', async () => {
    expect(await send(running.url, '/healthz')).toMatchObject({ status: 200 });
    expect(upstream.received.at(-1)?.target).toBe('/healthz');
    expect(await send(running.url, '/orders')).toMatchObject({ status: 401 });
    expect(upstream.received).toHaveLength(1);
  });
});
