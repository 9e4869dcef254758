import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LibraryCase } from './library-case.ts';
import { libraryCases } from './library-cases.ts';
import { type LibraryWorld, openLibraryWorld } from './library-world.ts';
import { openStage } from './stage.ts';

let world: LibraryWorld;

beforeAll(async () => {
  world = await openLibraryWorld();
});
afterAll(() => world.close());

async function playCase({ play, status, reason }: LibraryCase): Promise<void> {
  const stage = openStage(world);
  const answer = await play(stage, world);
  await stage.close();
  expect(answer).toEqual({ status, reason });
}

describe.each(Object.entries(libraryCases))('%s', (_, cases) => {
  it.each(cases.map((each) => [each.attack, each.name, each.status, each.reason ?? '–', each] as const))(
    '%s, %s → %i %s',
    (...row) => playCase(row[4]),
  );
});

describe('after all of them', () => {
  it('cases are unique', () => {
    for (const cases of Object.values(libraryCases)) {
      const names = cases.map(({ attack, name }) => `${attack}, ${name}`);
      expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    }
  });

  it('no redirect of the endpoint was followed', () => expect(world.endpoint.strays).toBe(0));
});
