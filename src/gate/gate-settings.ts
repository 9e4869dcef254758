import type { EffectiveSetting, SettingProblem } from '../server/settings/setting-report.ts';
import { readSettings, type SettingSources, type Settings, type SettingsResult } from '../server/settings/settings.ts';
import type { RulesFile } from './rules/rules-reader.ts';
import type { RulesOrigin } from './rules/rules-source.ts';

/** The effective settings of the gate. */
export interface GateSettings extends Pick<ReadSettings, 'settings' | 'effective' | 'misspellings'> {
  readonly rules: RulesOrigin;
}

type ReadSettings = Extract<SettingsResult, { kind: 'settings' }>;

export type GateSettingsResult =
  | ({ readonly kind: 'settings' } & GateSettings)
  | { readonly kind: 'problems'; readonly problems: readonly SettingProblem[] };

/** Who may ask for decisions, if nothing else is said: proxies on this machine. */
const loopback = '127.0.0.0/8,::1';
/** In the place of what the rules say themselves. */
const unused = { domain: 'unused.invalid', audience: 'unused' };
/** Its own name in a Redis that it shares with the service behind it: both judge one proof. */
const namespace = 'gate';
const policyFlags: ReadonlySet<string> = new Set(['--issuer', '--domain', '--audience', '--scope']);

/** Reads the settings of the gate, which has either rules or one issuer, audience and scope for everything. */
export function readGateSettings({ args, environment }: SettingSources): GateSettingsResult {
  const given = args.map(nameDomain);
  const read = (trust: string): SettingsResult =>
    readSettings({
      args: given.flat(),
      // It has no variants.
      environment: { ...environment, VARIANT: undefined },
      defaults: { ...unused, 'trust-proxy': trust, 'replay-namespace': namespace },
    });
  const first = read(loopback);
  // As the proxy it answers everybody; whose X-Forwarded-* to believe is another question.
  const result = first.kind === 'settings' && first.settings.upstream !== '' ? read('false') : first;
  if (result.kind === 'problems') return result;
  const { settings, effective } = result;
  const problems = [...checkTrust(settings), ...checkPolicy(settings, { effective, args: given.flat() })];
  if (problems.length > 0) return { kind: 'problems', problems };
  const rules: RulesOrigin =
    settings.rules === '' ? { kind: 'settings', file: writeRules(settings) } : { kind: 'file', path: settings.rules };
  return { ...result, rules };
}

/** `--issuer` takes a domain too. */
function nameDomain(arg: string, index: number, args: readonly string[]): string {
  if (arg === '--issuer' && isDomain(args[index + 1])) return '--domain';
  return arg.startsWith('--issuer=') && isDomain(arg.slice('--issuer='.length)) ? arg.replace('issuer', 'domain') : arg;
}

function isDomain(value: string | undefined): boolean {
  return value !== undefined && !value.includes('//');
}

function checkTrust({ trustProxy, upstream, spellings }: Settings): readonly SettingProblem[] {
  if (trustProxy !== 'all' || upstream !== '') return [];
  const fix = 'Anybody could ask for decisions, and say what is asked about. Write the addresses of the proxies.';
  return [{ name: spellings['TRUST_PROXY'] ?? 'TRUST_PROXY', value: 'true', fix }];
}

interface Given {
  readonly effective: readonly EffectiveSetting[];
  readonly args: readonly string[];
}

function checkPolicy(settings: Settings, { effective, args }: Given): readonly SettingProblem[] {
  const isGiven = (name: string): boolean => effective.some((each) => each.name === name && each.source !== 'default');
  const { domain, audience } = settings.variant.names;
  if (settings.rules !== '') {
    return args
      .map((arg) => arg.replace(/=.*/s, ''))
      .filter((arg) => policyFlags.has(arg))
      .map((name) => ({
        name,
        value: undefined,
        fix: 'The rules say it themselves. Leave it out, or leave out --rules.',
      }));
  }
  const problems: SettingProblem[] = [];
  if (!isGiven(domain) && !isGiven('ISSUER')) {
    problems.push({
      name: '--issuer',
      value: undefined,
      fix: 'It is required without --rules. Write the issuer of the tokens, such as https://id.example.com/, or its domain.',
    });
  }
  if (settings.issuer === undefined) {
    problems.push({
      name: settings.spellings[domain] ?? domain,
      value: undefined,
      fix: 'Write only the host of the provider, without https://.',
    });
  }
  if (!isGiven(audience)) {
    problems.push({
      name: '--audience',
      value: undefined,
      fix: 'It is required without --rules. Write the identifier of the API, as the issuer knows it.',
    });
  }
  return problems;
}

/** One rule for everything. */
function writeRules({ issuer, audience, scope }: Settings): RulesFile {
  const scopes = scope === '' ? {} : { scopes: scope.split(' ') };
  const text = JSON.stringify({
    issuers: { issuer: { issuer, audience } },
    rules: [{ id: 'all', path: '/**', ...scopes }],
  });
  return { name: 'settings', text };
}
