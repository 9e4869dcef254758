import { readFileSync, statSync } from 'node:fs';
import { hideUserInfo, showUrl } from '../../core/http/shown-url.ts';
import { withoutMark } from '../../core/jose/json.ts';
import { findLikeliest } from '../../core/likeliest-name.ts';
import { readProxyAddress } from '../../core/outbound/https-address.ts';
import { codeOf } from '../../core/shown-text.ts';
import { findRemoved } from './removed-settings.ts';
import type { EffectiveSetting, SettingProblem } from './setting-report.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** Prefix that the variables of earlier versions could have. */
const prefix = 'PORTCULLIS_';
const fileSuffix = '_FILE';
const maxFileBytes = 64 * 1024;
/** A shorter name differs by one letter from unrelated names: `HOME` is not a misspelt `HOST`. */
const leastLength = 7;

/**
 * Reads the variables of settings, and `NAME_FILE` for secrets. A name that an earlier version had, and one with its prefix,
 * is a problem; another name that is nearly a setting is a misspelling. `known`: names, each with true for a secret.
 */
export function readEnvironment(
  environment: Variables,
  known: ReadonlyMap<string, boolean>,
  problems: SettingProblem[],
) {
  const values = new Map(
    Object.entries(environment).flatMap(([name, value = '']) =>
      // An empty variable counts as not set: that is how compose files and shells unset one.
      value === '' || isOfKubernetes(name, value) ? [] : [[name, value] as const],
    ),
  );
  const names = new Set(
    Array.from(known, ([name, isSecret]) => [name, ...(isSecret ? [`${name}${fileSuffix}`] : [])]).flat(),
  );
  for (const [name, isSecret] of known) {
    const file = `${name}${fileSuffix}`;
    const path = isSecret ? values.get(file) : undefined;
    if (path === undefined) continue;
    const isTwice = values.delete(name);
    const read = isTwice ? { fix: `${file} and ${name} are both set. Keep one.` } : readSecret(path);
    if (typeof read === 'string') values.set(name, read);
    // The path is not shown: it may be the secret itself.
    else problems.push({ name: file, fix: read.fix });
  }
  const misspellings: { readonly name: string; readonly likely: string }[] = [];
  for (const name of values.keys()) {
    if (names.has(name)) continue;
    const fix = findRemoved(name) ?? refusePrefix(name, names);
    const likely = findLikeliest(name, names, leastLength);
    if (fix !== undefined) problems.push({ name, fix });
    else if (likely !== undefined) misspellings.push({ name, likely });
  }
  return { values, misspellings };
}

const fileFix = 'Set the path of a readable file that has only the secret in it.';

/** Reads a secret without the line break that editors and shells add. Returns a fix if the file cannot be used. */
export function readSecret(path: string): string | Pick<SettingProblem, 'fix'> {
  try {
    if (isNamedPipe(path)) return { fix: `The file is a named pipe. ${fileFix}` };
    if (statSync(path).size > maxFileBytes) return { fix: `The file has more than ${maxFileBytes} bytes. ${fileFix}` };
    const text = withoutMark(readFileSync(path))
      .toString()
      .replace(/\r?\n$/, '');
    return text === '' ? { fix: `The file is empty. ${fileFix}` } : text;
  } catch (error) {
    return { fix: `The file cannot be read (${codeOf(error)}). ${fileFix}` };
  }
}

/** A named pipe without a writer would block a service that reads it again. One of this process (`/dev/stdin`, `<(…)`) ends. */
export function isNamedPipe(path: string): boolean {
  return statSync(path).isFIFO() && !/^\/(?:dev|proc)\//.test(path);
}

function refusePrefix(name: string, names: ReadonlySet<string>): string | undefined {
  if (!name.startsWith(prefix)) return undefined;
  const plain = name.slice(prefix.length);
  if (names.has(plain) || outboundNames.includes(plain)) return `Settings have no prefix. Set ${plain}.`;
  const likely = findLikeliest(plain, names, leastLength);
  const next = likely === undefined ? 'Remove it; portcullis help settings lists all.' : `Did you mean ${likely}?`;
  return `There is no such setting. ${next}`;
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
