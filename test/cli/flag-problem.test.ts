import { describe, expect, it } from 'vitest';
import { runCommand } from '../../src/cli/commands/run.ts';
import { findLikeliest } from '../../src/core/likeliest-name.ts';
import { useOutput } from '../support/own-output.ts';

describe('flags that cannot be understood', () => {
  const printed = useOutput();

  it.each([
    [['--claim', 'x'], '--claim takes NAME=VALUE'],
    [['--auth-time', 'x'], '--auth-time takes a number'],
    [['--idp', 'x'], '--idp takes a URL'],
    [['--url', 'http://a/'], 'add --dpop'],
    [['--dpop', '--url', 'x'], '--url takes a URL'],
    [['--dpop', '--method', '1'], '--method takes a method'],
    [['--expired', '--not-yet-valid'], 'contradict each other'],
    [['--nope'], 'there is no flag --nope.'],
    [['--expird'], 'there is no flag --expird. Did you mean --expired?'],
    [['-s'], 'there is no flag -s.'],
    [['--scope', '--expired'], '--scope lacks its value.'],
    [['eyJhbGciOiJSUzI1NiJ9.e30.c2ln'], 'every argument is a flag, as in --name VALUE.'],
    [['positional'], 'every argument is a flag'],
    [['--scope'], '--scope lacks its value.'],
    [['--expired=yes'], '--expired takes no value.'],
    [['--idp', 'localhost'], '--idp takes a URL'],
    [['--claim', '=x'], '--claim takes NAME=VALUE'],
    [['--method', 'HEAD'], 'add --dpop'],
    [['--nonce', 'x'], 'add --dpop'],
    [['--dpop', '--url', 'ftp://api.example/'], '--url takes a URL'],
    [['--dpop', '--method', 'G ET'], '--method takes a method'],
    [['--dpop', '--method', ''], '--method takes a method'],
    [['--dpop=yes'], '--dpop takes no value.'],
  ])('token %j → 64, which flag and what it takes, and where the help is', async (args, problem) => {
    expect(await runCommand('token', args, {})).toBe(64);
    expect(printed.stdout).toBe('');
    expect(printed.stderr).toMatch(/^portcullis: .*\nFlags and examples: portcullis token --help\n$/);
    expect(printed.stderr.split('\n')[0]).toContain(problem);
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
