import { readFileSync, statSync } from 'node:fs';
import { hideUserInfo, showUrl } from '../../core/http/shown-url.ts';
import { findLikeliest } from '../../core/likeliest-name.ts';
import { readProxyAddress } from '../../core/outbound/https-address.ts';
import { codeOf } from '../../core/shown-text.ts';
import { findRemoved } from './removed-settings.ts';
import type { EffectiveSetting, SettingProblem } from './setting-report.ts';

type Variables = Readonly<Record<string, string | undefined>>;

export interface KnownName {
  readonly name: string;
  /** True if the value may be in a file, which `NAME_FILE` names. */
  readonly isSecret: boolean;
}

export interface Misspelling {
  readonly name: string;
  readonly likely: string;
}

/** Variables that are set under another name than the plain one, by the plain name. */
export type Spellings = Readonly<Record<string, string>>;

export interface SettingEnvironment {
  /** Values by the plain name, for every spelling. */
  readonly values: Variables;
  readonly spellings: Spellings;
  readonly problems: readonly SettingProblem[];
  readonly misspellings: readonly Misspelling[];
}

/** Prefix that every variable may have. */
export const prefix = 'PORTCULLIS_';
const fileSuffix = '_FILE';
const maxFileBytes = 64 * 1024;
/** A shorter name differs by one letter from unrelated names: `HOME` is not a misspelt `HOST`. */
const leastLength = 7;

/**
 * Reads the variables of settings: `PORTCULLIS_NAME` before `NAME`, and `NAME_FILE` for secrets. An unknown name with the
 * prefix is a problem; without the prefix, a name that is nearly a setting is a misspelling.
 */
export function readEnvironment(environment: Variables, known: readonly KnownName[]): SettingEnvironment {
  const variables = new Map(
    Object.entries(environment).flatMap(([name, value = '']) =>
      // An empty variable counts as not set: that is how compose files and shells unset one.
      value === '' || isOfKubernetes(name, value) ? [] : [[name, value] as const],
    ),
  );
  const names = new Set(known.flatMap(({ name, isSecret }) => [name, ...(isSecret ? [`${name}${fileSuffix}`] : [])]));
  const values: Record<string, string> = {};
  const spellings: Record<string, string> = {};
  const problems: SettingProblem[] = [];
  for (const { name, isSecret } of known) {
    const spelling = findSpelling(variables, name);
    const file = isSecret ? findSpelling(variables, `${name}${fileSuffix}`) : undefined;
    const used = file ?? spelling;
    if (used === undefined) continue;
    if (used !== name) spellings[name] = used;
    const value = variables.get(used) ?? '';
    const isTwice = file !== undefined && spelling !== undefined;
    const read = isTwice ? refuseBoth(file, spelling) : file === undefined ? value : readSecret(value);
    if (typeof read === 'string') values[name] = read;
    // The path is not shown: it may be the secret itself.
    else problems.push({ name: used, value: undefined, fix: read.fix });
  }
  const unknown = [...variables.keys()].filter((name) => !names.has(name));
  for (const name of unknown) {
    const fix = findRemoved(name);
    if (fix !== undefined) problems.push({ name, value: undefined, fix });
    else if (name.startsWith(prefix) && !names.has(name.slice(prefix.length)))
      problems.push(refuseUnknown(name, names));
  }
  const misspellings = unknown.flatMap((name) => {
    if (name.startsWith(prefix) || findRemoved(name) !== undefined) return [];
    const likely = findLikeliest(name, names, leastLength);
    return likely === undefined ? [] : [{ name, likely }];
  });
  return { values, spellings, problems, misspellings };
}

function findSpelling(variables: ReadonlyMap<string, string>, name: string): string | undefined {
  return [`${prefix}${name}`, name].find((spelling) => variables.has(spelling));
}

const fileFix = 'Set the path of a readable file that has only the secret in it.';

/** Reads a secret without the line break that editors and shells add. Returns a fix if the file cannot be used. */
export function readSecret(path: string): string | Pick<SettingProblem, 'fix'> {
  try {
    if (statSync(path).size > maxFileBytes) return { fix: `The file has more than ${maxFileBytes} bytes. ${fileFix}` };
    const text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
    return text === '' ? { fix: `The file is empty. ${fileFix}` } : text;
  } catch (error) {
    return { fix: `The file cannot be read (${codeOf(error)}). ${fileFix}` };
  }
}

export function refuseBoth(name: string, rival: string): SettingProblem {
  return { name, value: undefined, fix: `${name} and ${rival} are both set. Keep one.` };
}

function refuseUnknown(name: string, names: ReadonlySet<string>): SettingProblem {
  const plain = name.slice(prefix.length);
  const likely = findLikeliest(plain, names, leastLength);
  const fix = outboundNames.includes(plain)
    ? `There is no such setting. Set ${plain}, without the prefix.`
    : likely === undefined
      ? 'There is no such setting. Remove it; portcullis config --help lists all.'
      : `There is no such setting. Did you mean ${prefix}${likely}?`;
  return { name, value: undefined, fix };
}

/** Variables that Node and the HTTP client read. */
const outboundNames: readonly string[] = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'NODE_EXTRA_CA_CERTS'];

/** Shows and checks the outbound settings that Node and the HTTP client read. */
export function readProxies(environment: Variables, problems: SettingProblem[]): readonly EffectiveSetting[] {
  const effective: EffectiveSetting[] = [];
  for (const name of outboundNames) {
    // Lower case first, as the client reads them.
    const value = environment[name.toLowerCase()] ?? environment[name];
    if (value === undefined || value === '') continue;
    const isProxy = name.startsWith('HTTP');
    const shown = (isProxy ? showUrl : hideUserInfo)(value);
    effective.push({ name, value: shown, source: 'environment' });
    if (isProxy && readProxyAddress(value) === undefined) {
      problems.push({ name, value: shown, fix: 'Set a URL such as http://proxy.example.com:3128.' });
    }
  }
  return effective;
}

/** Kubernetes sets these for every Service of a namespace, whose name may be `portcullis` or `admin`. */
function isOfKubernetes(name: string, value: string): boolean {
  return (
    /^(?:tcp|udp):\/\//.test(value) ||
    /_SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/.test(name) ||
    /_PORT_\d+_(?:TCP|UDP)(?:_[A-Z]+)?$/.test(name)
  );
}
