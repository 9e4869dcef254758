import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { hideUserInfo, showUrl } from '../../core/http/shown-url.ts';
import { isJsonObject, parseJsonObject, withoutMark } from '../../core/jose/json.ts';
import { findLikeliest } from '../../core/likeliest-name.ts';
import type { IdentityMode } from '../observation/audit/identity.ts';
import { type Variant, variants } from '../variants/variants.ts';
import { isNamedPipe, readEnvironment, readProxies } from './environment.ts';
import { findRemoved } from './removed-settings.ts';
import type { EffectiveSetting, SettingProblem, Source } from './setting-report.ts';
import type { SettingRow } from './setting-row.ts';
import { hidden } from './setting-schemas.ts';
import { type SettingName, settingTable } from './setting-table.ts';

type Values = { readonly [Name in SettingName]: v.InferOutput<(typeof settingTable)[Name]['schema']> };

export interface Settings extends Omit<Values, 'variant' | 'domain' | 'issuer' | 'jwksUri'> {
  readonly variant: Variant;
  /** The complete URL, as `iss` has it; `undefined` for a domain with a scheme, which names none. */
  readonly issuer: string | undefined;
  /** Address of the keys; `undefined`: the metadata of the issuer has it. */
  readonly jwksUri: string | undefined;
  /** Form of identities in the audit trail: `logIdentity`, or `hashed` if that is not set. */
  readonly auditIdentity: IdentityMode;
}

export interface SettingSources {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Written forms, by flag, of defaults that replace the defaults of the table. */
  readonly defaults?: Readonly<Partial<Record<string, string>>>;
}

export type SettingsResult = ReturnType<typeof readSettings>;

const names = Object.keys(settingTable) as SettingName[]; // the keys are the names
const rows: readonly SettingRow[] = names.map((name) => settingTable[name]);

/** Defaults for commands that use neither the provider nor the audience. */
export const unused = { domain: 'unused.invalid', audience: 'unused' };

/** Reads flags over environment over the settings file over defaults, and collects every problem. */
export function readSettings({ args, environment: variables, defaults = {} }: SettingSources) {
  const problems: SettingProblem[] = [];
  const { values: environment, misspellings } = readEnvironment(variables, knownNames(), problems);
  const flags = readFlags(args, problems);
  const file = readFile(flags.get('settings'), problems);
  const find = (row: SettingRow, variant: Variant): { readonly value: unknown; readonly source: Source } => {
    const name = environmentName(row, variant);
    if (flags.has(row.flag)) return { value: flags.get(row.flag), source: 'flag' };
    if (environment.has(name)) return { value: environment.get(name), source: 'environment' };
    const key = fileKeys(name).find((candidate) => file.has(candidate));
    if (key !== undefined) return { value: file.get(key), source: 'file' };
    const defaultValue = defaults[row.flag] ?? row.defaultValue;
    return { value: typeof defaultValue === 'function' ? defaultValue(variant) : defaultValue, source: 'default' };
  };

  const variantName = v.safeParse(settingTable.variant.schema, find(settingTable.variant, variants.a).value);
  const variant: Variant = variants[variantName.success ? variantName.output : 'a'];
  const writtenIssuer = find(settingTable.issuer, variant);
  const isIssuerSet = writtenIssuer.source !== 'default' && writtenIssuer.value !== '';
  const isIdentitySet = find(settingTable.logIdentity, variant).source !== 'default';
  const values: Record<string, unknown> = {};
  const effective: EffectiveSetting[] = [];
  for (const name of names) {
    const row: SettingRow = settingTable[name];
    const written = find(row, variant);
    const plain = environmentName(row, variant);
    const value = show(row, written.value);
    if (name === 'domain' && isIssuerSet) {
      if (written.source === 'default') continue;
      problems.push({ name: plain, fix: `${plain} and ISSUER are both set. Keep one.` });
    }
    const result = v.safeParse(row.schema, written.value);
    effective.push({ name: plain, value: value ?? '', source: written.source });
    if (result.success) values[name] = result.output;
    else problems.push({ name: plain, value, fix: value === undefined ? `It is required. ${row.fix}` : row.fix });
  }
  effective.push(...readProxies(variables, problems));
  problems.push(...findUnknownKeys(file, variant), ...findConflicts(values, isIdentitySet));
  if (problems.length > 0) return { kind: 'problems', problems } as const;

  const { domain, issuer, jwksUri, ...others } = values as Values; // each member comes from its own schema
  const ofDomain = (): string | undefined => (domain.kind === 'host' ? `https://${domain.text}/` : undefined);
  const settings: Settings = {
    ...{ ...others, variant },
    issuer: issuer === '' ? ofDomain() : issuer,
    jwksUri: jwksUri === '' ? undefined : jwksUri,
    auditIdentity: isIdentitySet ? others.logIdentity : 'hashed',
  };
  // Misspellings: variables that are probably settings; they have no effect.
  return { kind: 'settings', settings, effective, misspellings } as const;
}

/** Returns the variable of a setting. */
export function environmentName({ environment }: SettingRow, variant: Variant): string {
  return typeof environment === 'string' ? environment : environment(variant);
}

/** The names of every variant, each with true for a secret, which may be in a file that `NAME_FILE` names: a name of another variant is not a misspelt name of this one. */
function knownNames(): ReadonlyMap<string, boolean> {
  const known = Object.values(variants).flatMap((variant) =>
    rows.map((row) => [environmentName(row, variant), row.secret !== undefined] as const),
  );
  return new Map(known);
}

/** The settings file accepts the variable's name unchanged, or in lower case. */
function fileKeys(name: string): readonly string[] {
  return [name.toLowerCase(), name];
}

/** Every user of the host can read the arguments of a process. */
function isSecret({ secret, redact }: SettingRow, value: string): boolean {
  if (value === '') return false;
  return secret === 'always' || (secret === 'credentials' && redact?.(value) !== value);
}

function describeSecret(row: SettingRow): string {
  const name = environmentName(row, variants.a);
  return `Every user of this host can read the arguments of a process. Set ${name}, or set ${name}_FILE to the path of a file.`;
}

/** Flags of fewer letters differ by few letters from many others. */
const leastLetters = 4;

function readFlags(args: readonly string[], problems: SettingProblem[]): ReadonlyMap<string, string> {
  const known = new Set<string>([...rows.map(({ flag }) => flag), 'settings']);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries([...known].map((flag) => [flag, { type: 'string' as const }])),
    strict: false,
    tokens: true,
  });
  const flags = new Map<string, string>();
  const refuse = (name: string, fix: string): void => void problems.push({ name, fix });
  let unknownAt = -2;
  for (const token of tokens) {
    if (token.kind === 'option' && known.has(token.name)) {
      const row = rows.find(({ flag }) => flag === token.name);
      if (token.value === undefined) refuse(`--${token.name}`, `Set a value: --${token.name} VALUE.`);
      else if (row !== undefined && isSecret(row, token.value)) refuse(`--${token.name}`, describeSecret(row));
      else flags.set(token.name, token.value);
    } else if (token.kind === 'option') {
      const likely = findLikeliest(token.name, known, leastLetters);
      const hint = likely === undefined ? '' : ` Did you mean --${likely}?`;
      const fix = `There is no such flag.${hint} See portcullis help settings.`;
      refuse(token.rawName, findRemoved(token.name) ?? fix);
      unknownAt = token.index;
    } else if (token.kind === 'positional' && token.index !== unknownAt + 1) {
      // The argument after an unknown flag is its value.
      refuse('argument', 'Every setting is a flag: --name VALUE.');
    }
  }
  return flags;
}

function readFile(path: string | undefined, problems: SettingProblem[]): ReadonlyMap<string, unknown> {
  if (path === undefined) return new Map();
  try {
    const bytes = withoutMark(isNamedPipe(path) ? Buffer.alloc(0) : readFileSync(path));
    const value: unknown = JSON.parse(bytes.toString());
    if (isJsonObject(value)) {
      const file = new Map(Object.entries(value));
      // JSON.parse keeps the last of two equal names, which the operator may not have intended.
      const isStrict = parseJsonObject(bytes) !== undefined;
      const fix = 'The file has a duplicate name. Write each name once.';
      problems.push(...(isStrict ? findTwins(file) : [{ name: '--settings', value: path, fix }]));
      return file;
    }
  } catch {
    // reported below: missing, unreadable, a pipe or not JSON, the fix is equal
  }
  problems.push({ name: '--settings', value: path, fix: 'Set the path of a readable file with one JSON object.' });
  return new Map();
}

/** Finds settings under both of their names: only one of them would have an effect. */
function findTwins(file: ReadonlyMap<string, unknown>): readonly SettingProblem[] {
  return [...knownNames().keys()].flatMap((name) => {
    const [first, second] = fileKeys(name).filter((key) => file.has(key));
    if (first === undefined || second === undefined) return [];
    const fix = `The settings file also has ${second}, which is the same setting. Write one of the two.`;
    return [{ name: first, fix }];
  });
}

function findUnknownKeys(file: ReadonlyMap<string, unknown>, variant: Variant): readonly SettingProblem[] {
  const known = new Set(rows.flatMap((row) => fileKeys(environmentName(row, variant))));
  const fix = 'The settings file has an unknown setting. Remove it.';
  const unknown = [...file.keys()].filter((key) => !known.has(key));
  return unknown.map((name) => ({ name, fix: findRemoved(name) ?? fix }));
}

function findConflicts(values: Partial<Values>, isIdentitySet: boolean): readonly SettingProblem[] {
  const conflicts: SettingProblem[] = [];
  const need = (name: SettingName, cause: string): void => {
    const row: SettingRow = settingTable[name];
    const fix = `${cause} requires it. ${row.fix}`;
    if (values[name] === '') conflicts.push({ name: environmentName(row, variants.a), fix });
  };
  if (values.dpopRequired === true && values.dpopEnabled === false) {
    const fix = 'DPoP cannot be required while DPOP_ENABLED is false. Set DPOP_ENABLED=true, or DPOP_REQUIRED=false.';
    conflicts.push({ name: 'DPOP_REQUIRED', value: 'true', fix });
  }
  if (values.jwksUri === '' && values.issuer?.startsWith('http:')) {
    const fix = `Plain http is for issuers whose keys are fetched from JWKS_URI. ${settingTable.issuer.fix}`;
    conflicts.push({ name: 'ISSUER', value: showUrl(values.issuer), fix });
  }
  if (values.dpopNonce === 'required') need('dpopNonceSecret', 'DPOP_NONCE=required');
  if (values.logIdentity === 'hashed') need('logIdentitySecret', 'LOG_IDENTITY=hashed');
  if (values.auditLog !== 'off' && !isIdentitySet) need('logIdentitySecret', 'AUDIT_LOG without LOG_IDENTITY');
  if (values.console === 'on') need('consoleKeyFile', 'CONSOLE=on');
  if (values.console === 'on' && values.adminPort === 'off') {
    const fix = 'The console is on the admin listener. Set ADMIN_PORT to a port, or set CONSOLE=off.';
    conflicts.push({ name: 'CONSOLE', value: 'on', fix });
  }
  if (values.adminKeyFile !== '' && values.adminPort === 'off') {
    const fix = 'POST /revocations is on the admin listener. Set ADMIN_PORT to a port, or remove ADMIN_KEY_FILE.';
    conflicts.push({ name: 'ADMIN_KEY_FILE', fix });
  }
  conflicts.push(...findUnshared(values));
  if (values.tlsCert !== '') need('tlsKey', 'TLS_CERT');
  if (values.tlsKey !== '') need('tlsCert', 'TLS_KEY');
  if (values.tlsClientCa !== '') need('tlsCert', 'TLS_CLIENT_CA');
  return conflicts;
}

/** Formats a written value in one line, secrets redacted. */
function show(row: SettingRow, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (row.secret !== undefined && typeof value !== 'string') return hidden;
  const text = typeof value === 'string' ? value : Array.isArray(value) ? value.join(',') : JSON.stringify(value);
  return (row.redact ?? hideUserInfo)(text);
}

/** Sources of cutoffs: settings and their variables. */
const revocationSources = {
  logoutClients: 'LOGOUT_CLIENTS',
  sharedSignals: 'SHARED_SIGNALS',
  adminKeyFile: 'ADMIN_KEY_FILE',
} as const;

type RevocationSource = keyof typeof revocationSources;

export function findRevocationSources(values: Partial<Pick<Values, RevocationSource>>): readonly string[] {
  const names = Object.keys(revocationSources) as RevocationSource[]; // its own members
  return names.filter((name) => (values[name] ?? '').length > 0).map((name) => revocationSources[name]);
}

export function countProcesses({ workers }: Pick<Values, 'workers'>): number {
  return workers === 'auto' ? availableParallelism() : workers;
}

/** Finds settings that need shared memory, and ports above the highest one. */
function findUnshared(values: Partial<Values>): readonly SettingProblem[] {
  const { workers = 1, adminPort = 'off', dpopEnabled, replayStore, revocationStore } = values;
  if (workers === 1) return [];
  const one = 'or set WORKERS=1.';
  const problems: SettingProblem[] = [];
  if (dpopEnabled === true && replayStore === 'memory') {
    const fix = `Several processes share no memory, and each would accept a used proof. Set a URL of Redis, set DPOP_ENABLED=false, ${one}`;
    problems.push({ name: 'REPLAY_STORE', value: replayStore, fix });
  }
  const sources = findRevocationSources(values);
  if (revocationStore === 'memory' && sources.length > 0) {
    const fix = `Several processes share no memory, and each would know its own cutoffs only. Set a URL of Redis, remove ${sources.join(', ')}, ${one}`;
    problems.push({ name: 'REVOCATION_STORE', value: revocationStore, fix });
  }
  const last = countProcesses({ workers }) - 1;
  if (adminPort !== 'off' && adminPort !== 0 && adminPort + last > 65_535) {
    const fix = `The processes use this port and the ${last} ports after it. Set a number up to ${65_535 - last}, 0 or off.`;
    problems.push({ name: 'ADMIN_PORT', value: String(adminPort), fix });
  }
  return problems;
}
