import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { page, recordSession, sessionPlace } from '../../tools/scripts/docs/sessions.js';

it('each command of the session in docs/explain.md → prints what the page shows', async () => {
  const [, shown] = sessionPlace.exec(readFileSync(page, 'utf8')) ?? [];
  expect(await recordSession()).toBe(shown);
});
