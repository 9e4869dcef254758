import { expect, it } from 'vitest';
import { composeCode } from '../../site/finder.js';
import { readFinderData } from '../../site/finder-data.js';
import { compileScripts } from '../support/compile-scripts.ts';

const { providers, frameworks } = readFinderData();

it('each provider with each framework → code that compiles', async () => {
  const files = new Map<string, string>();
  for (const provider of providers) {
    for (const framework of frameworks) {
      const name = `${provider.id}-${framework.name.replace(/\W/g, '')}.ts`;
      files.set(name, composeCode(provider, framework));
    }
  }
  expect(files.size).toBeGreaterThan(70);
  expect(await compileScripts(files)).toEqual([]);
});
