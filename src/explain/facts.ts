import { attempt } from '../core/attempt.ts';
import type { DpopMode } from '../core/http/credentials.ts';
import type { ResourceRequest } from '../core/http/request.ts';
import { isJsonObject, type JsonObject } from '../core/jose/json.ts';
import type { KeySet, ManagedKeySet } from '../core/keys/key-set.ts';
import { isCombined } from '../core/policy/checked-policy.ts';
import type { Policy } from '../core/policy/policy.ts';
import type { Disguise } from '../core/shown-comparison.ts';
import type { Gathered } from './dry-run.ts';
import type { InputKind } from './input/input.ts';

/** A setting that a fix may name. */
export type Setting = 'issuer' | 'audience' | 'dpopAccepted' | 'trustProxy' | 'algorithms';

/** The name of a setting: a variable of the service, or an option of the library. */
export interface SettingLabel {
  /** Name as the operator writes it. */
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
  | 'clientCertificate'
  | 'cors';

/** Labels of the settings, for the messages of an explanation. */
export type SettingLabels = Readonly<Record<Setting, SettingLabel> & Partial<Record<RareSetting, SettingLabel>>>;

/** The active rules, as far as causes use them. */
export interface InForce {
  readonly issuers: readonly string[];
  readonly audiences: readonly string[];
  readonly algorithms: readonly string[];
  /** Scopes that the route requires: all of them, or any one. */
  readonly scopes: readonly string[];
  readonly permissions: readonly string[];
  readonly mode: DpopMode;
  readonly labels: SettingLabels;
  /** With it the service starts, and refuses every token. */
  readonly domainHasScheme: boolean;
  readonly disguise?: Disguise | undefined;
}

type Read = ReturnType<typeof readFacts>;

/** The request and the parts of its token, verified or not. */
export type Seen = Read['seen'];

export interface Facts extends Omit<Read, 'isKeyKnown' | 'keysFetchedAt'> {
  /** True if a trusted issuer publishes the `kid` of the token; `undefined` without keys. */
  readonly isKeyKnown?: boolean | undefined;
  /** Seconds since the epoch at which the keys of the trusted issuers were fetched; `undefined` if that is not known. */
  readonly keysFetchedAt?: number | undefined;
  /** Claims with which the condition of the rule would hold. */
  readonly wanted?: JsonObject | undefined;
  /** Permissions of the token, of a check that requires some. */
  readonly held?: unknown;
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

const otherHeaders = (
  'X-Access-Token X-Auth-Token X-Authorization Access-Token Token X-Api-Key apikey X-Forwarded-Access-Token ' +
  'Sec-WebSocket-Protocol'
).split(' ');
/** Protocols of a WebSocket are a list. */
const tokenLike = /^(?:bearer )?(?:[\w.-]+, *)*(?:[\w-]+\.)?(ey[\w-]+\.[\w-]+\.[\w-]*)$/i;

export function secretsOf({ headers, url }: ResourceRequest): readonly string[] {
  const values = ['authorization', 'dpop', 'cookie', ...otherHeaders].map((name) => headers.get(name) ?? '');
  const [query = ''] = /[?#].*$/s.exec(url) ?? [];
  // A scheme is not a secret; parts of a token are.
  return [...values.flatMap((value) => value.split(/[\s.,;]+/)), ...query.split(/[?&=#]/)];
}

/** The origin of a preflight (Fetch Standard); `null` for every other request. */
export function preflightOriginOf({ method, headers }: ResourceRequest): string | null {
  const isPreflight = method === 'OPTIONS' && headers.get('access-control-request-method') !== null;
  return isPreflight ? headers.get('origin') : null;
}

export function readForce(
  { rules, issuer, trusted: found }: Gathered,
  policy: Policy<unknown>,
  options: Partial<Pick<InForce, 'labels' | 'domainHasScheme' | 'disguise'>>,
): InForce {
  const { labels = optionLabels, domainHasScheme = false, disguise } = options;
  const trusted = [...(found?.issuers.values() ?? [])];
  const ofToken = issuer === undefined ? trusted : [issuer];
  const { scopes = [], anyScope = [], permissions = [] } = isCombined(policy) ? {} : policy;
  return {
    issuers: trusted.map((each) => each.issuer),
    audiences: [...new Set(ofToken.flatMap((each) => [...each.audiences]))],
    algorithms: [...new Set<string>(ofToken.flatMap((each) => [...each.algorithms]))],
    scopes: [...scopes, ...anyScope],
    ...{ permissions, mode: rules.mode, labels, domainHasScheme, disguise },
  };
}

/** Reads what causes compare. */
export function readFacts(sight: Gathered, force: InForce, kind: InputKind) {
  const { headers, url } = sight.call.request;
  const authorization = headers.get('authorization');
  /** Credentials after the scheme; may be empty. */
  const token = sight.credentials?.token ?? (authorization ?? '').replace(/^[^\s]*\s*/, '');
  const unverified = readUnverified(token);
  const header = sight.header ?? unverified.header;
  return {
    seen: {
      ...{ kind, authorization, token, url, header, cookie: headers.get('cookie') },
      /** Other headers whose value looks like a token. */
      otherHeaders: otherHeaders.flatMap((name): readonly (readonly [name: string, token: string])[] => {
        const [, found] = tokenLike.exec(headers.get(name) ?? '') ?? [];
        return found === undefined ? [] : [[name, found]];
      }),
      claims: sight.claims ?? unverified.claims,
      proofClaims: sight.proofClaims ?? {},
      preflightOrigin: preflightOriginOf(sight.call.request),
    },
    force,
    /** External URL of the request; `undefined` if it is not known. */
    externalUrl: sight.url === undefined ? undefined : `${sight.url.origin}${sight.url.path}`,
    /** Configured origin and prefix of the external URL. */
    pinnedUrl: sight.url?.pinned,
    isKeyKnown: findKid(sight, textOf(header['kid'])),
    keysFetchedAt: readFetchTime(sight),
    /** Seconds since the epoch. */
    now: sight.call.now,
  };
}

const keySetsOf = ({ call, trusted }: Gathered): readonly KeySet[] =>
  [...(trusted?.issuers.values() ?? [])].map(({ keys }) => call.keys ?? keys);

/** The oldest fetch. A key set that the application provides has no age. */
function readFetchTime(sight: Gathered): number | undefined {
  const ages = keySetsOf(sight).flatMap((keys) =>
    'status' in keys ? ((keys as ManagedKeySet).status().ageSeconds ?? []) : [],
  ); // only managed ones have it
  return ages.length === 0 ? undefined : sight.rules.now() - Math.max(...ages);
}

function findKid(sight: Gathered, kid: string): boolean | undefined {
  const usable = keySetsOf(sight).filter((keys) => keys.usable());
  return usable.length === 0 ? undefined : usable.some((keys) => keys.has(kid));
}

/** Reads header and claims of a string that may be a token, as far as possible. Only causes use them. */
export function readUnverified(token: string): { readonly header: JsonObject; readonly claims: JsonObject } {
  const text = token.replace(/^["'`]|["'`]$/g, '').replace(/^(?:bearer|dpop):? /i, '');
  const [header = {}, claims = {}] = text.split('.', 2).map(readPart);
  return { header, claims };
}

function readPart(part: string): JsonObject {
  const value: unknown = attempt(JSON.parse, Buffer.from(part, 'base64url').toString());
  return isJsonObject(value) ? value : {};
}
