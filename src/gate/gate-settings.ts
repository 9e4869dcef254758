import { trustsAll } from '../core/http/external-url.ts';
import type { EffectiveSetting, SettingProblem } from '../server/settings/setting-report.ts';
import {
  readSettings,
  type SettingSources,
  type Settings,
  type SettingsResult,
  unused,
} from '../server/settings/settings.ts';
import type { RulesOrigin } from './rules/rules-files.ts';
import type { RulesFile } from './rules/rules-reader.ts';

export interface GateSettings extends Pick<ReadSettings, 'settings' | 'effective' | 'misspellings'> {
  /** True if TRUST_PROXY is set, so that its default does not depend on the mode. */
  readonly isTrustSet: boolean;
  readonly rules: RulesOrigin;
}

type ReadSettings = Extract<SettingsResult, { kind: 'settings' }>;

export type GateSettingsResult =
  | ({ readonly kind: 'settings' } & GateSettings)
  | { readonly kind: 'problems'; readonly problems: readonly SettingProblem[] };

const loopback = '127.0.0.0/8,::1';
/** Namespace in a Redis that an upstream service shares: both validate the same proof. */
const namespace = 'gate';
const policyFlags: ReadonlySet<string> = new Set(['--issuer', '--domain', '--jwks-uri', '--audience', '--scope']);

/** Reads the settings of the gate, which has either rules or one issuer, audience and scope for everything. */
export function readGateSettings({ args, environment }: SettingSources): GateSettingsResult {
  const written = args.map(nameDomain).map(writeMcpFlag);
  const read = (trust: string): SettingsResult =>
    readSettings({
      args: written,
      // The gate has no variants.
      environment: { ...environment, VARIANT: undefined },
      // The rules file replaces domain and audience.
      defaults: { ...unused, 'trust-proxy': trust, 'replay-namespace': namespace },
    });
  const first = read(loopback);
  // As the proxy, the gate serves all clients, and by default trusts X-Forwarded-* of none.
  const result = first.kind === 'settings' && first.settings.upstream !== '' ? read('false') : first;
  if (result.kind === 'problems') return result;
  const { settings, effective } = result;
  const given = { effective, args: written };
  const problems = [...checkTrust(settings), ...checkMcp(settings), ...checkPolicy(settings, given)];
  if (problems.length > 0) return { kind: 'problems', problems };
  const rules: RulesOrigin =
    settings.rules === '' ? { kind: 'settings', file: writeRules(settings) } : { kind: 'file', path: settings.rules };
  const isTrustSet = effective.some(({ name, source }) => name === 'TRUST_PROXY' && source !== 'default');
  return { ...result, rules, isTrustSet };
}

/** Maps `--mcp` without a value to `--mcp=true`. */
function writeMcpFlag(arg: string, index: number, args: readonly string[]): string {
  return arg === '--mcp' && (args[index + 1] ?? '--').startsWith('--') ? '--mcp=true' : arg;
}

function nameDomain(arg: string, index: number, args: readonly string[]): string {
  if (arg === '--issuer' && isDomain(args[index + 1])) return '--domain';
  return arg.startsWith('--issuer=') && isDomain(arg.slice('--issuer='.length)) ? arg.replace('issuer', 'domain') : arg;
}

function isDomain(value: string | undefined): boolean {
  return value !== undefined && !value.includes('//');
}

function checkTrust({ trustProxy, upstream, rules }: Settings): readonly SettingProblem[] {
  // A rules file can contain upstreams.
  if (!trustsAll(trustProxy) || upstream !== '' || rules !== '') return [];
  const fix =
    'Any client could query the gate and choose the request that it decides on. Set the addresses of the proxies.';
  return [{ name: 'TRUST_PROXY', value: trustProxy === 'all' ? 'true' : String(trustProxy), fix }];
}

function checkMcp({ mcp, rules, upstream, variant, ...settings }: Settings): readonly SettingProblem[] {
  const problem = (name: string, fix: string): SettingProblem => ({ name, value: undefined, fix });
  if (!mcp || rules !== '') return [];
  if (upstream === '') {
    return [
      problem(
        'UPSTREAM',
        '--mcp requires it without rules. Set the address of the MCP server, such as http://127.0.0.1:3000.',
      ),
    ];
  }
  return isResource(settings.audience)
    ? []
    : [
        problem(
          variant.names.audience,
          'With --mcp it is the URL of the server as clients use it, such as https://mcp.example.com/mcp: https, or http on this host.',
        ),
      ];
}

function isResource(audience: string): boolean {
  return /^(?:https:\/\/|http:\/\/(?:localhost|127\.|\[::1\]))[^?#\s]+$/.test(audience) && URL.canParse(audience);
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
      .map((name) => ({ name, value: undefined, fix: 'The rules file sets it. Omit it, or omit --rules.' }));
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
    problems.push({ name: domain, value: undefined, fix: 'Write only the host of the provider, without https://.' });
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

function writeRules({ issuer, jwksUri, audience, scope, mcp }: Settings): RulesFile {
  const scopes = scope === '' ? {} : { scopes: scope.split(' ') };
  const rule = mcp
    ? { id: 'mcp', path: `${new URL(audience).pathname.replace(/\/$/, '')}/**`, mcp: anyOperation, ...scopes }
    : { id: 'all', path: '/**', ...scopes };
  return {
    name: 'settings',
    text: JSON.stringify({ issuers: { issuer: { issuer, jwksUri, audience } }, rules: [rule] }),
  };
}

/** Entries that admit every operation: only the rule is required. */
const anyOperation = { tools: { '*': {} }, resources: { '*': {} }, prompts: { '*': {} } };
