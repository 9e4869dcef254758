import { trustsAll } from '../core/http/external-url.ts';
import type { SettingProblem } from '../server/settings/setting-report.ts';
import { readSettings, type SettingSources, type Settings, unused } from '../server/settings/settings.ts';
import type { RulesOrigin } from './rules/rules-files.ts';
import type { RulesFile } from './rules/rules-reader.ts';

export type GateSettings = Extract<ReturnType<typeof readGateSettings>, { kind: 'settings' }>;

const loopback = '127.0.0.0/8,::1';
/** Namespace in a Redis that an upstream service shares: both validate the same proof. */
const namespace = 'gate';
const policyFlags: ReadonlySet<string> = new Set(['--issuer', '--domain', '--jwks-uri', '--audience', '--scope']);

/** Reads the settings of the gate, which has either rules or one issuer, audience and scope for everything. */
export function readGateSettings({ args, environment }: SettingSources) {
  const written = args.map(nameDomain).map(writeMcpFlag);
  const read = (trust: string) =>
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
  const isGiven = (name: string): boolean => effective.some((each) => each.name === name && each.source !== 'default');
  const problems = [...checkTrust(settings), ...checkMcp(settings), ...checkPolicy(settings, written, isGiven)];
  if (problems.length > 0) return { kind: 'problems', problems } as const;
  const rules: RulesOrigin =
    settings.rules === '' ? { kind: 'settings', file: writeRules(settings) } : { kind: 'file', path: settings.rules };
  // If TRUST_PROXY is set, its default does not depend on the mode.
  return { ...result, rules, isTrustSet: isGiven('TRUST_PROXY') };
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
  return [{ name: 'TRUST_PROXY', value: trustProxy === 'all' ? 'true' : String(trustProxy), fix: fixes.trust }];
}

const fixes = {
  trust: 'Any client could query the gate and choose the request that it decides on. Set the addresses of the proxies.',
  upstream: '--mcp requires it without rules. Set the address of the MCP server, such as http://127.0.0.1:3000.',
  resource:
    'With --mcp it is the URL of the server as clients use it, such as https://mcp.example.com/mcp: https, or http on this host.',
  policy: 'The rules file sets it. Omit it, or omit --rules.',
  issuer:
    'It is required without --rules. Write the issuer of the tokens, such as https://id.example.com/, or its domain.',
  domain: 'Write only the host of the provider, without https://.',
  audience: 'It is required without --rules. Write the identifier of the API, as the issuer knows it.',
} as const;

function checkMcp({ mcp, rules, upstream, variant, audience }: Settings): readonly SettingProblem[] {
  if (!mcp || rules !== '') return [];
  if (upstream === '') return [{ name: 'UPSTREAM', fix: fixes.upstream }];
  return isResource(audience) ? [] : [{ name: variant.names.audience, fix: fixes.resource }];
}

function isResource(audience: string): boolean {
  return /^(?:https:\/\/|http:\/\/(?:localhost|127\.|\[::1\]))[^?#\s]+$/.test(audience) && URL.canParse(audience);
}

function checkPolicy(
  { rules, issuer, variant }: Settings,
  args: readonly string[],
  isGiven: (name: string) => boolean,
): readonly SettingProblem[] {
  const { domain, audience } = variant.names;
  if (rules !== '') {
    const flags = args.map((arg) => arg.replace(/=.*/s, '')).filter((arg) => policyFlags.has(arg));
    return flags.map((name) => ({ name, fix: fixes.policy }));
  }
  const problems: SettingProblem[] = [];
  if (!isGiven(domain) && !isGiven('ISSUER')) problems.push({ name: '--issuer', fix: fixes.issuer });
  if (issuer === undefined) problems.push({ name: domain, fix: fixes.domain });
  if (!isGiven(audience)) problems.push({ name: '--audience', fix: fixes.audience });
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
