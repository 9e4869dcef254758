import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { judgeInProcess, openServer } from './judge-case.ts';
import { hostileKeys } from './key-sets.ts';
import type { ServiceName } from './row.ts';
import { catalogue, titleRows, tokenParts } from './rows.ts';
import { beyondDefaultKeys } from './signatures-beyond-default.ts';
import { openWorld, type World } from './world.ts';

let world: World;
const servers = new Map<ServiceName, ResourceServer>();

beforeAll(async () => {
  world = await openWorld({ published: [...hostileKeys, ...beyondDefaultKeys], services: [] });
  for (const name of ['default', 'allAlgorithms'] as const) servers.set(name, await openServer(name, world));
});
afterAll(async () => {
  for (const server of servers.values()) server.close();
  await world.close();
});

describe.each(tokenParts)('%s', (_, rows) => {
  it.each(titleRows(rows))('%s, %s → %i %s', async (...[, , , , row]) => {
    const server = servers.get(row.service);
    if (server === undefined) throw new Error('There is no such server.');
    await judgeInProcess(row, server, world);
  });
});

it('cases are unique', () => {
  for (const rows of Object.values(catalogue)) {
    const names = rows.map(({ attack, name }) => `${attack}, ${name}`);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  }
});

it('no request to the decoy, or to another path of the provider; one fetch of keys for each server', () => {
  expect(world.decoy.connections).toBe(0);
  for (const path of ['/', '/jwks', '/elsewhere', '/key', '/cert'] as const)
    expect(world.provider.requests(path)).toBe(0);
});
