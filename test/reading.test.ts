import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { formatPaths, paths, pathsPlace, recordPaths } from '../tools/scripts/docs/request-paths.js';

const [, section] = pathsPlace.exec(readFileSync('CONTRIBUTING.md', 'utf8')) ?? [];

describe('the path of a request', () => {
  let recorded: Readonly<Record<string, readonly string[]>>;
  beforeAll(async () => {
    recorded = await recordPaths();
  });

  it('every path → the core is on it', () => {
    expect(Object.keys(recorded)).toEqual(Object.keys(paths));
    for (const files of Object.values(recorded)) expect(files).toContain('core/resource-server/judgement.ts');
  });

  it.each(Object.entries(paths))('%s → no more modules than its bound', (name, { most }) =>
    expect(recorded[name]?.length).toBeLessThanOrEqual(most),
  );

  it('CONTRIBUTING.md → lists what executes', () => expect(section).toBe(formatPaths(recorded)));
});
