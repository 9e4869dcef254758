import { describe, expect, it, vi } from 'vitest';
import { commandTable } from '../../src/cli/commands/command-table.ts';
import { findUnknownFlag, readFlags } from '../../src/cli/commands/flags.ts';
import { runCommand } from '../../src/cli/commands/run.ts';
import { findLikeliest } from '../../src/core/likeliest-name.ts';

const runToken = (args: readonly string[], variables: NodeJS.ProcessEnv) => runCommand('token', args, variables);

function describeArgs(...args: readonly string[]): string {
  try {
    const unknown = findUnknownFlag(args, commandTable.token);
    if (unknown === undefined) readFlags('token', args);
    return unknown ?? 'good';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('flags that cannot be understood', () => {
  it.each([
    [['--bogus'], 'there is no flag --bogus.'],
    [['--expird'], 'there is no flag --expird. Did you mean --expired?'],
    [['-s'], 'there is no flag -s.'],
    [['--scope'], '--scope lacks its value.'],
    [['--scope', '--expired'], '--scope lacks its value.'],
    [['--expired=yes'], '--expired takes no value.'],
    [['eyJhbGciOiJSUzI1NiJ9.e30.c2ln'], 'every argument is a flag, as in --name VALUE.'],
  ])('%j → %s', (args, problem) => expect(describeArgs(...args)).toBe(problem));

  it.each([
    [['--claim', 'x'], '--claim takes NAME=VALUE'],
    [['--auth-time', 'x'], '--auth-time takes a number'],
    [['--idp', 'x'], '--idp takes a URL'],
    [['--url', 'http://a/'], 'add --dpop'],
    [['--dpop', '--url', 'x'], '--url takes a URL'],
    [['--dpop', '--method', '1'], '--method takes a method'],
    [['--expired', '--not-yet-valid'], 'contradict each other'],
    [['--nope'], 'there is no flag --nope.'],
  ])('token %j → says which flag, and what it takes', async (args, problem) => {
    const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    expect(await runToken(args, {})).toBe(64);
    expect(String(write.mock.calls[0]?.[0])).toMatch(/^portcullis: /);
    expect(String(write.mock.calls[0]?.[0]).split('\n')[0]).toContain(problem);
    write.mockRestore();
  });
});

it.each([
  ['nope', ['scope'], undefined],
  ['scop', ['scope'], 'scope'],
  ['isuer', ['issuer'], 'issuer'],
  ['audiance', ['audience'], 'audience'],
  ['prot', ['host', 'port'], 'port'],
  ['pore', ['host', 'scope'], undefined],
])('%s of %j → %s', (name, names, likely) => expect(findLikeliest(name, names, 4)).toBe(likely));
