import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { hideUserInfo } from '../../http/shown-url.ts';
import { isJsonObject, parseJsonObject } from '../../jose/json.ts';
import { findLikeliest } from '../../likeliest-name.ts';
import { type Variant, variants } from '../variants/variants.ts';
import { type KnownName, type Misspelling, readEnvironment, type Spellings } from './environment.ts';
import { readProxies } from './proxy-settings.ts';
import type { EffectiveSetting, SettingProblem, Source } from './setting-report.ts';
import { hidden, type SettingName, type SettingRow, settingTable } from './setting-table.ts';

/** The values of all settings, as their schemas give them. */
type Values = { readonly [Name in SettingName]: v.InferOutput<(typeof settingTable)[Name]['schema']> };

/** The effective settings of the service. */
export interface Settings extends Omit<Values, 'variant' | 'domain' | 'issuer'> {
  readonly variant: Variant;
  /** In full, as `iss` has it; `undefined` for a domain with a scheme, which names none. */
  readonly issuer: string | undefined;
  readonly spellings: Spellings;
}

/** What the settings are read from. */
export interface SettingSources {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Written forms, by flag, of defaults that differ from those of the table. */
  readonly defaults?: Readonly<Record<string, string>>;
}

/** Either usable settings or every problem at once. */
export type SettingsResult =
  | {
      readonly kind: 'settings';
      readonly settings: Settings;
      readonly effective: readonly EffectiveSetting[];
      /** Variables that are probably misspelt settings; they have no effect. */
      readonly misspellings: readonly Misspelling[];
    }
  | { readonly kind: 'problems'; readonly problems: readonly SettingProblem[] };

interface Written {
  readonly value: unknown;
  readonly source: Source;
}

/** Settings that may stand in the place of another; both together are an error. */
const replacements: Readonly<Partial<Record<SettingName, SettingName>>> = { domain: 'issuer' };

const names = Object.keys(settingTable) as SettingName[]; // the keys are the names
const rows: readonly SettingRow[] = names.map((name) => settingTable[name]);

/** Reads flags over environment over the settings file over defaults, and collects every problem. */
export function readSettings({ args, environment: variables, defaults = {} }: SettingSources): SettingsResult {
  const problems: SettingProblem[] = [];
  const { values: environment, spellings, misspellings, ...read } = readEnvironment(variables, knownNames());
  problems.push(...read.problems);
  const flags = readFlags(args, problems);
  const file = readFile(flags.get('settings'), problems);
  const call = (name: string): string => spellings[name] ?? name;
  const look = (row: SettingRow, variant: Variant): Written => {
    const name = environmentName(row, variant);
    const key = fileKeys(name).find((candidate) => file.has(candidate));
    const flag = flags.get(row.flag);
    if (flag !== undefined) return { value: flag, source: 'flag' };
    if (environment[name] !== undefined) return { value: environment[name], source: 'environment' };
    if (key !== undefined) return { value: file.get(key), source: 'file' };
    const defaultValue = defaults[row.flag] ?? row.defaultValue;
    return { value: typeof defaultValue === 'function' ? defaultValue(variant) : defaultValue, source: 'default' };
  };

  const variantName = v.safeParse(settingTable.variant.schema, look(settingTable.variant, variants.a).value);
  const variant: Variant = variants[variantName.success ? variantName.output : 'a'];
  /** The variable of a setting that was written in the place of another. */
  const findRival = (name: SettingName): string | undefined => {
    const rival = replacements[name];
    if (rival === undefined) return undefined;
    const { value, source } = look(settingTable[rival], variant);
    return source === 'default' || value === '' ? undefined : call(environmentName(settingTable[rival], variant));
  };
  const values: Record<string, unknown> = {};
  const effective: EffectiveSetting[] = [];
  for (const name of names) {
    const row: SettingRow = settingTable[name];
    const written = look(row, variant);
    const label = environmentName(row, variant);
    const called = call(label);
    const shown = show(row, written.value);
    const rival = findRival(name);
    if (rival !== undefined) {
      if (written.source === 'default') continue;
      problems.push({
        name: called,
        value: shown,
        fix: `${rival} is set too. Write one of the two, and remove the other.`,
      });
    }
    const result = v.safeParse(row.schema, written.value);
    effective.push({ name: label, value: shown ?? '', source: written.source });
    if (result.success) values[name] = result.output;
    else
      problems.push({ name: called, value: shown, fix: shown === undefined ? `It is required. ${row.fix}` : row.fix });
  }
  effective.push(...readProxies(variables, problems));
  problems.push(...unknownFileKeys(file, variant), ...findConflicts(values, call));
  if (problems.length > 0) return { kind: 'problems', problems };

  const { domain, issuer, ...others } = values as Values; // each member comes from its own schema
  const settings: Settings = { ...others, variant, issuer: issuer === '' ? nameIssuer(domain) : issuer, spellings };
  return { kind: 'settings', settings, effective, misspellings };
}

/** The issuer of a domain. */
function nameIssuer({ kind, text }: Values['domain']): string | undefined {
  return kind === 'host' ? `https://${text}/` : undefined;
}

/** The name a setting has in the environment: the plain one, or the one that it is set under. */
export function environmentName(row: SettingRow, variant: Variant, spellings: Spellings = {}): string {
  const name = typeof row.environment === 'string' ? row.environment : row.environment(variant);
  return spellings[name] ?? name;
}

/** Under the names of every variant: one of another variant is no misspelt name of this one. */
function knownNames(): readonly KnownName[] {
  const known = Object.values(variants).flatMap((variant) =>
    names.map((name) => {
      const row: SettingRow = settingTable[name];
      return { name: environmentName(row, variant), isSecret: row.secret !== undefined };
    }),
  );
  return [...new Map(known.map((each) => [each.name, each])).values()];
}

/** The settings file takes the environment's name as it is, or in lower case. */
function fileKeys(name: string): readonly string[] {
  return [name.toLowerCase(), name];
}

/** Every user of the machine can read the arguments of a process. */
function isSecret({ secret, redact }: SettingRow, value: string): boolean {
  if (value === '') return false;
  return secret === 'always' || (secret === 'credentials' && redact?.(value) !== value);
}

function refuseSecret(row: SettingRow): SettingProblem {
  const name = environmentName(row, variants.a);
  return {
    name: `--${row.flag}`,
    value: undefined,
    fix: `Every user of this machine can read the arguments of a process. Set ${name}, or let ${name}_FILE name a file.`,
  };
}

/** Flags of fewer letters are nearly each other. */
const leastLetters = 4;

function readFlags(args: readonly string[], problems: SettingProblem[]): ReadonlyMap<string, string> {
  const known = new Set<string>([...names.map((name) => settingTable[name].flag), 'settings']);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries([...known].map((flag) => [flag, { type: 'string' as const }])),
    strict: false,
    tokens: true,
  });
  const flags = new Map<string, string>();
  let unknownAt = -2;
  for (const token of tokens) {
    if (token.kind === 'option' && known.has(token.name) && token.value !== undefined) {
      const row = rows.find(({ flag }) => flag === token.name);
      if (row !== undefined && isSecret(row, token.value)) problems.push(refuseSecret(row));
      else flags.set(token.name, token.value);
    } else if (token.kind === 'option' && known.has(token.name)) {
      problems.push({ name: `--${token.name}`, value: undefined, fix: `Write a value: --${token.name} VALUE.` });
    } else if (token.kind === 'option') {
      const meant = findLikeliest(token.name, known, leastLetters);
      const hint = meant === undefined ? '' : ` Did you mean --${meant}?`;
      problems.push({
        name: token.rawName,
        value: undefined,
        fix: `There is no such flag.${hint} See portcullis --help.`,
      });
      unknownAt = token.index;
    } else if (token.kind === 'positional' && token.index !== unknownAt + 1) {
      // What stands behind an unknown flag is its value.
      problems.push({ name: 'argument', value: undefined, fix: 'Every setting is a flag: --name VALUE.' });
    }
  }
  return flags;
}

function readFile(path: string | undefined, problems: SettingProblem[]): ReadonlyMap<string, unknown> {
  if (path === undefined) return new Map();
  try {
    const text = readFileSync(path, 'utf8');
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) {
      const file = new Map(Object.entries(value));
      // JSON.parse keeps the last of two equal names, which the person may not have meant.
      const isStrict = parseJsonObject(Buffer.from(text)) !== undefined;
      problems.push(...(isStrict ? findTwins(file) : [{ name: '--settings', value: path, fix: twinFix }]));
      return file;
    }
  } catch {
    // reported below: missing, unreadable or not JSON, the fix is the same
  }
  problems.push({ name: '--settings', value: path, fix: 'Name a readable file that holds one JSON object.' });
  return new Map();
}

const twinFix = 'A member stands in the file twice. Write each name once.';

/** One setting under both of its names: only one of them would count. */
function findTwins(file: ReadonlyMap<string, unknown>): readonly SettingProblem[] {
  return knownNames().flatMap(({ name }) => {
    const [first, second] = fileKeys(name).filter((key) => file.has(key));
    if (first === undefined || second === undefined) return [];
    const fix = `${second} stands in the settings file too, and is the same setting. Write one of the two, and remove the other.`;
    return [{ name: first, value: undefined, fix }];
  });
}

function unknownFileKeys(file: ReadonlyMap<string, unknown>, variant: Variant): readonly SettingProblem[] {
  const known = new Set(names.flatMap((name) => fileKeys(environmentName(settingTable[name], variant))));
  return [...file.keys()]
    .filter((key) => !known.has(key))
    .map((key) => ({
      name: key,
      value: undefined,
      fix: 'The settings file has a member that is no setting. Remove it.',
    }));
}

/** Settings that are valid one by one and not together; `call` tells how a variable is spelled. */
function findConflicts(values: Partial<Values>, call: (name: string) => string): readonly SettingProblem[] {
  const conflicts: SettingProblem[] = [];
  const need = (name: string, cause: string, fix: string): void => {
    conflicts.push({ name: call(name), value: undefined, fix: `${cause} needs it. ${fix}` });
  };
  if (values.dpopRequired === true && values.dpopEnabled === false) {
    const [required, enabled] = [call('DPOP_REQUIRED'), call('DPOP_ENABLED')];
    conflicts.push({
      name: required,
      value: 'true',
      fix: `DPoP cannot be required while ${enabled} is false. Set ${enabled}=true, or ${required}=false.`,
    });
  }
  if (values.dpopNonce === 'required' && values.dpopNonceSecret === '') {
    need('DPOP_NONCE_SECRET', `${call('DPOP_NONCE')}=required`, settingTable.dpopNonceSecret.fix);
  }
  if (values.logIdentity === 'hashed' && values.logIdentitySecret === '') {
    need('LOG_IDENTITY_SECRET', `${call('LOG_IDENTITY')}=hashed`, settingTable.logIdentitySecret.fix);
  }
  if (values.console === 'on' && values.consoleKeyFile === '') {
    need('CONSOLE_KEY_FILE', `${call('CONSOLE')}=on`, settingTable.consoleKeyFile.fix);
  }
  if (values.console === 'on' && values.adminPort === 'off') {
    const [console, port] = [call('CONSOLE'), call('ADMIN_PORT')];
    conflicts.push({
      name: console,
      value: 'on',
      fix: `The console is on the admin listener. Let ${port} name a port, or set ${console}=off.`,
    });
  }
  for (const [name, other] of [
    ['TLS_CERT', 'TLS_KEY'],
    ['TLS_KEY', 'TLS_CERT'],
    ['TLS_CLIENT_CA', 'TLS_CERT'],
  ] as const) {
    const written = { TLS_CERT: values.tlsCert, TLS_KEY: values.tlsKey, TLS_CLIENT_CA: values.tlsClientCa };
    if (written[name] !== '' && written[other] === '') need(other, call(name), settingTable.tlsCert.fix);
  }
  return conflicts;
}

/** The written value in one line of text, secrets redacted. */
function show(row: SettingRow, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (row.secret !== undefined && typeof value !== 'string') return hidden;
  const text = typeof value === 'string' ? value : Array.isArray(value) ? value.join(',') : JSON.stringify(value);
  return (row.redact ?? hideUserInfo)(text);
}
