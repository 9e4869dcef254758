import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GateCase } from './gate-case.ts';
import { type GateWorld, openGateWorld } from './gate-world.ts';
import { gates } from './gates.ts';
import { openStage } from './stage.ts';

let world: GateWorld;

beforeAll(async () => {
  world = await openGateWorld();
});
afterAll(() => world.close());

async function judgeGate({ play, status, reason }: GateCase): Promise<void> {
  const stage = openStage(world);
  const answer = await play(stage, world);
  await stage.close();
  expect(answer).toEqual({ status, reason });
}

describe.each(Object.entries(gates))('%s', (_, cases) => {
  it.each(cases.map((each) => [each.attack, each.name, each.status, each.reason ?? '–', each] as const))(
    '%s, %s → %i %s',
    (...row) => judgeGate(row[4]),
    60_000,
  );
});

describe('after all of them', () => {
  it('no case stands twice', () => {
    for (const cases of Object.values(gates)) {
      const names = cases.map(({ attack, name }) => `${attack}, ${name}`);
      expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    }
  });

  it('nobody has followed a redirect of the endpoint', () => {
    expect(world.endpoint.strays).toBe(0);
  });
});
