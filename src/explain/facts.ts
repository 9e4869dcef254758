import type { DpopMode } from '../core/http/credentials.ts';
import type { ResourceRequest } from '../core/http/request.ts';
import { isJsonObject, type JsonObject } from '../core/jose/json.ts';
import { isCombined } from '../core/policy/checked-policy.ts';
import type { Policy } from '../core/policy/policy.ts';
import type { Gathered } from '../core/resource-server/dry-run.ts';
import type { Disguise } from '../core/shown-comparison.ts';
import type { InputKind } from './input/input.ts';

/** A setting that a fix may name. */
export type Setting = 'issuer' | 'audience' | 'dpopAccepted' | 'trustProxy' | 'algorithms';

/** The name of a setting: a variable of the service, or an option of the library. */
export interface SettingLabel {
  readonly name: string;
  /** Source of the value, such as `from the environment`; `undefined` if it is not known. */
  readonly source: string | undefined;
  /** Writes the line that sets this value. */
  set(value: string): string;
}

/** A setting for less usual tokens and requests. Not every service has it. */
export type RareSetting =
  | 'externalUrl'
  | 'scopeClaim'
  | 'permissionsClaim'
  | 'subject'
  | 'clientIds'
  | 'introspection'
  | 'clientCertificate';

/** Labels of the settings, for the messages of an explanation. */
export type SettingLabels = Readonly<Record<Setting, SettingLabel> & Partial<Record<RareSetting, SettingLabel>>>;

export interface InForce {
  readonly issuers: readonly string[];
  readonly audiences: readonly string[];
  readonly mode: DpopMode;
  readonly algorithms: readonly string[];
  /** Scopes that the route requires: all of them, or any one. */
  readonly scopes: readonly string[];
  readonly permissions: readonly string[];
  /** True if the domain is set with the prefix `https://`. The service starts, and refuses every token. */
  readonly domainHasScheme: boolean;
  readonly disguise?: Disguise | undefined;
  readonly labels: SettingLabels;
}

export interface Seen {
  readonly kind: InputKind;
  /** Value of the Authorization header. */
  readonly authorization: string | null;
  /** Credentials after the scheme; may be empty. */
  readonly token: string;
  readonly url: string | undefined;
  readonly cookie: string | null;
  /** Other headers whose value looks like a token. */
  readonly otherHeaders: readonly (readonly [name: string, token: string])[];
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly proofClaims: JsonObject;
}

export interface Facts {
  readonly seen: Seen;
  readonly force: InForce;
  /** External URL of the request; `undefined` if it is not known. */
  readonly externalUrl: string | undefined;
  /** Configured origin and prefix of the external URL. */
  readonly pinnedUrl: string | undefined;
  /** True if a trusted issuer publishes the `kid` of the token; `undefined` without keys. */
  readonly isKeyKnown?: boolean | undefined;
  /** Seconds since the epoch. */
  readonly now: number;
  /** Claims with which the condition of the rule would hold. */
  readonly wanted?: JsonObject | undefined;
}

export function audiencesOf({ aud }: JsonObject): readonly string[] {
  return (Array.isArray(aud) ? aud : [aud]).filter((each): each is string => typeof each === 'string');
}

/** The names of a claim: an array of strings, or one string with spaces. */
export function namesOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return value.split(' ').filter((name) => name !== '');
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
}

/** The value if it is a string, otherwise an empty string. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Labels a setting. `set` writes the line that sets a value. */
export function createLabel(
  name: string,
  set: SettingLabel['set'] = (value) => `${name}: '${value}'`,
  source?: string,
): SettingLabel {
  return { name, source, set };
}

export const optionLabels: SettingLabels = {
  issuer: createLabel('issuer'),
  audience: createLabel('audience'),
  dpopAccepted: createLabel('dpop.mode', () => "dpop: { mode: 'allowed' }"),
  trustProxy: createLabel('trustProxy', (value) => `trustProxy: ['${value}']`),
  algorithms: createLabel('algorithms', (value) => `algorithms: ['${value.split(',').join("', '")}']`),
  externalUrl: createLabel('externalUrl'),
  scopeClaim: createLabel('scopeClaim'),
  permissionsClaim: createLabel('permissionsClaim'),
  subject: createLabel('subject'),
  clientIds: createLabel('clientIds', (value) => `clientIds: ['${value}']`),
  introspection: createLabel('introspection'),
  clientCertificate: createLabel('clientCertificate', () => "clientCertificate: 'tls'"),
};

/** Facts about settings that the rules do not have. */
export interface ForceOptions {
  readonly labels?: SettingLabels;
  readonly domainHasScheme?: boolean;
  readonly disguise?: Disguise | undefined;
}

const otherHeaders = [
  'X-Access-Token',
  'X-Auth-Token',
  'X-Authorization',
  'Access-Token',
  'Token',
  'X-Api-Key',
  'apikey',
  'X-Forwarded-Access-Token',
  'Sec-WebSocket-Protocol',
];
/** Protocols of a WebSocket are a list. */
const tokenLike = /^(?:bearer )?(?:[\w.-]+, *)*(?:[\w-]+\.)?(ey[\w-]+\.[\w-]+\.[\w-]*)$/i;

export function secretsOf({ headers, url }: ResourceRequest): readonly string[] {
  const values = ['authorization', 'dpop', 'cookie', ...otherHeaders].map((name) => headers.get(name) ?? '');
  const end = url.search(/[?#]/);
  const query = end < 0 ? '' : url.slice(end);
  // A scheme is not a secret; parts of a token are.
  return [...values.flatMap((value) => value.split(/[\s.,;]+/)), ...query.split(/[?&=#]/)];
}

/** Reads the active rules, as far as causes use them. */
export function readForce(
  { rules, issuer, trusted: found }: Gathered,
  policy: Policy<unknown>,
  options: ForceOptions,
): InForce {
  const trusted = [...(found?.issuers.values() ?? [])];
  const { scopes = [], anyScope = [], permissions = [] } = isCombined(policy) ? {} : policy;
  return {
    issuers: trusted.map((each) => each.issuer),
    audiences:
      issuer === undefined ? [...new Set(trusted.flatMap(({ audiences }) => [...audiences]))] : [...issuer.audiences],
    mode: rules.mode,
    algorithms:
      issuer === undefined
        ? [...new Set(trusted.flatMap(({ algorithms }) => [...algorithms]))]
        : [...issuer.algorithms],
    scopes: [...scopes, ...anyScope],
    permissions,
    domainHasScheme: options.domainHasScheme ?? false,
    disguise: options.disguise,
    labels: options.labels ?? optionLabels,
  };
}

export function readFacts(
  { headers, url }: ResourceRequest,
  sight: Gathered,
  { force, now, kind }: { readonly force: InForce; readonly now: number; readonly kind: InputKind },
): Facts {
  const authorization = headers.get('authorization');
  const token = sight.credentials?.token ?? (authorization ?? '').replace(/^[^\s]*\s*/, '');
  const unverified = readUnverified(token);
  const seenHeader = sight.header ?? unverified.header;
  return {
    seen: {
      kind,
      authorization,
      token,
      url,
      cookie: headers.get('cookie'),
      otherHeaders: otherHeaders.flatMap((name) => {
        const [, found] = tokenLike.exec(headers.get(name) ?? '') ?? [];
        return found === undefined ? [] : [[name, found] as const];
      }),
      header: seenHeader,
      claims: sight.claims ?? unverified.claims,
      proofClaims: sight.proofClaims ?? {},
    },
    force,
    externalUrl: sight.url === undefined ? undefined : `${sight.url.origin}${sight.url.path}`,
    pinnedUrl: sight.url?.pinned,
    isKeyKnown: findKid(sight, textOf(seenHeader['kid'])),
    now,
  };
}

function findKid({ call, trusted }: Gathered, kid: string): boolean | undefined {
  const keySets = [...(trusted?.issuers.values() ?? [])].map(({ keys }) => call.keys ?? keys);
  const usable = keySets.filter((keys) => keys.usable());
  return usable.length === 0 ? undefined : usable.some((keys) => keys.has(kid));
}

/** Reads header and claims of a string that may be a token, as far as possible. Only causes use them. */
export function readUnverified(token: string): { readonly header: JsonObject; readonly claims: JsonObject } {
  const [header = '', claims = ''] = token
    .replace(/^["'`]|["'`]$/g, '')
    .replace(/^(?:bearer|dpop):? /i, '')
    .split('.');
  return { header: readPart(header), claims: readPart(claims) };
}

function readPart(part: string): JsonObject {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
