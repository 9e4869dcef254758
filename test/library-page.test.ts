import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { failures } from '../src/core/failures.ts';
import { memberNames } from '../src/core/policy/checked-policy.ts';
import { ruleNames } from '../src/core/resource-server/issuers/trusted-issuer.ts';
import { dpopChecks, serverChecks } from '../src/core/resource-server/options.ts';

const page = await readFile('docs/library.md', 'utf8');

/** The first cells of the rows of a table, which follows a text. */
function namesBehind(text: string): readonly string[] {
  const [, table = ''] = page.slice(page.indexOf(text)).match(/\n\n\|.*\n\| ---.*\n((?:\|.*\n)+)/) ?? [];
  return [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name);
}

describe('docs/library.md', () => {
  it.each([
    ['## Options', Object.keys(serverChecks)],
    ['Members of `dpop`', Object.keys(dpopChecks)],
  ])('%s: every option stands in the table, and no other', (text, names) =>
    expect(namesBehind(text).toSorted()).toEqual(names.toSorted()),
  );

  it('## Policies: every member stands in the table, and no other', () =>
    expect(namesBehind('## Policies').toSorted()).toEqual(memberNames.toSorted()));

  it('the rules of an issuer are named', () => {
    const [, text = ''] = /can have its own rules: ([^.]*)\./s.exec(page) ?? [];
    expect([...text.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(ruleNames);
  });

  it('every reason that it names is one', () => {
    const named = [...page.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)].map(([, name = '']) => name);
    const others = [
      ...['auth_time', 'client_id', 'acr_values', 'max_age', 'insufficient_user_authentication'],
      ...['token_endpoint', 'invalid_grant', 'invalid_target', 'invalid_scope'],
    ];
    expect(named.filter((name) => !others.includes(name) && !Object.hasOwn(failures, name))).toEqual([]);
  });
});
