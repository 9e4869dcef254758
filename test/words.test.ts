import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Failure, failures } from '../src/core/failures.ts';
import { settingTable } from '../src/server/settings/setting-table.ts';
import { pages, referencePage } from './support/pages.ts';

/** Words that hurried readers stumble over, each with the everyday word. */
const wordsThatAreOut: readonly (readonly [RegExp, string])[] = [
  [/\bmend(?:s|ed|ing)?\b/i, 'fix'],
  [/\bdear\b/i, 'expensive'],
  [/\balone\b/i, 'only'],
  [/\bhitherto\b|\bwhence\b|\bthereof\b|\bwherein\b/i, 'say it in two sentences'],
];

/** Words of the longest sentence that an operator has to read. */
const longestSentence = 32;

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .map((name) => `src/${name.replaceAll('\\', '/')}`)
  .filter((name) => name.endsWith('.ts'));
const documents = [...pages, 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'].filter((page) => page !== referencePage);

/** What an operator reads when something is wrong. */
const operatorTexts: readonly (readonly [string, string])[] = [
  ...Object.entries<Failure>(failures).map(([reason, { fix }]) => [`fix of ${reason}`, fix] as const),
  ...Object.entries(settingTable).flatMap(([name, { meaning, fix }]) => [
    [`meaning of ${name}`, meaning] as const,
    [`fix of ${name}`, fix] as const,
  ]),
];

it.each([...sources, ...documents])('words that are out: %s has none', (file) => {
  const found = readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line, index) =>
      wordsThatAreOut
        .filter(([word]) => word.test(line))
        .map(([, better]) => `${file}:${index + 1}: write "${better}"`),
    );
  expect(found).toEqual([]);
});

describe('texts for operators', () => {
  it.each(operatorTexts)(`%s: no sentence has more than ${longestSentence} words`, (_, text) => {
    for (const sentence of text.split(/(?<=[.;:])\s/)) {
      expect(sentence.split(/\s+/).length, sentence).toBeLessThanOrEqual(longestSentence);
    }
  });
});
