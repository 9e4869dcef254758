import { expect, it } from 'vitest';
import { readGateSettings } from '../../../src/gate/gate-settings.ts';
import { warnOfSettings } from '../../../src/server/settings/running-settings.ts';
import { readSettings } from '../../../src/server/settings/settings.ts';

const policy = { ISSUER: 'https://id.example/', IDP_AUDIENCE: 'api' };

/** The warnings of a command: the event, and the setting or variable. */
function warnings(
  command: 'serve' | 'gate',
  environment: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): readonly string[] {
  const sources = { args, environment: { ...(environment['RULES'] === undefined && policy), ...environment } };
  const result = command === 'gate' ? readGateSettings(sources) : readSettings(sources);
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems));
  const lines: string[] = [];
  const write = (_level: 'warn', event: string, { setting, variable, fix }: Readonly<Record<string, string>>): void =>
    void lines.push(`${event} ${setting ?? variable}: ${fix}`);
  warnOfSettings(result, command, { write });
  return lines;
}

const unread = (setting: string, command: string, other: string): string =>
  `setting_unread ${setting}: portcullis ${command} does not read it. Remove it, or run portcullis ${other}.`;

const comma = (setting: string, list: string): string =>
  `audience_has_comma ${setting}: It is one audience, with its comma. For several, write "audience": ${list} of an issuer in the rules of a gate.`;

it.each<['serve' | 'gate', Readonly<Record<string, string>>, readonly string[], readonly string[]]>([
  ['gate', { CORS_ORIGINS: 'https://app.example' }, [], []],
  ['gate', {}, ['--docs', 'false'], [unread('DOCS', 'gate', 'serve')]],
  ['gate', {}, ['--audience', 'https://a/, https://a'], [comma('IDP_AUDIENCE', '["https://a/","https://a"]')]],
  ['serve', { IDP_AUDIENCE: 'a,b' }, [], [comma('IDP_AUDIENCE', '["a","b"]')]],
  ['serve', { VARIANT: 'b', IDP_AUDIENCE: '', IdpApiIdentifier: 'a,b' }, [], [comma('IdpApiIdentifier', '["a","b"]')]],
  [
    'gate',
    { DOCS: 'false', CUSTOM_CLAIM: 'c' },
    [],
    [unread('CUSTOM_CLAIM', 'gate', 'serve'), unread('DOCS', 'gate', 'serve')],
  ],
  ['gate', { RULES: 'rules.json', UPSTREAM: 'http://127.0.0.1:1', UPSTREAM_TIMEOUT: '5' }, [], []],
  ['gate', { SCOPE: 'read', CORS_ORIGINS: '' }, [], []],
  ['gate', { KEEP_ALIV: '10' }, [], ['setting_unknown KEEP_ALIV: It has no effect. Did you mean KEEP_ALIVE?']],
  ['serve', { CORS_ORIGINS: 'https://app.example', DOCS: 'false', UPSTREAM: '' }, [], []],
  [
    'serve',
    { IDP_DOMAIN: 'id.example', ISSUER: '', RULES: 'rules.json', SCOPE: 'read', IDP_AUDIENCE: 'a' },
    [],
    [unread('RULES', 'serve', 'gate'), unread('SCOPE', 'serve', 'gate')],
  ],
  ['serve', {}, ['--upstream', 'http://127.0.0.1:1'], [unread('UPSTREAM', 'serve', 'gate')]],
])('settings that a command does not read: %s, %j %j → %j', (command, environment, args, expected) =>
  expect(warnings(command, environment, args)).toEqual(expected),
);
