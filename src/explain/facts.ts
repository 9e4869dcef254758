import type { DpopMode } from '../http/credentials.ts';
import type { JsonObject } from '../jose/json.ts';
import type { InputKind } from './input/input.ts';

/** What an operator sets and a fix may name. */
export type Setting = 'issuer' | 'audience' | 'dpopAccepted' | 'trustProxy' | 'algorithms';

/** How a setting is called by whoever set it: a variable of the service, or an option of the library. */
export interface SettingLabel {
  readonly name: string;
  /** Where its value comes from, as in `from the environment`; `undefined` if nobody knows. */
  readonly source: string | undefined;
  /** The line that gives it this value. */
  set(value: string): string;
}

/** What decides about less usual tokens and calls. Not every service can be set to take them. */
export type RareSetting = 'externalUrl' | 'scopeClaim' | 'permissionsClaim' | 'subject' | 'clientIds' | 'introspection';

/** What each setting is called where it is set, for the texts of an explanation. */
export type SettingLabels = Readonly<Record<Setting, SettingLabel> & Partial<Record<RareSetting, SettingLabel>>>;

/** What a call is held against: the rules in force, as far as causes look at them. */
export interface InForce {
  readonly issuers: readonly string[];
  readonly audiences: readonly string[];
  readonly mode: DpopMode;
  readonly algorithms: readonly string[];
  /** Scopes that the route needs: all of them, or any one. */
  readonly scopes: readonly string[];
  readonly permissions: readonly string[];
  /** A mistake in the settings themselves, which the service survives: the domain was written with `https://`. */
  readonly domainHasScheme: boolean;
  readonly labels: SettingLabels;
}

/** What was seen of a call. The token is only read here; whether it is valid is decided elsewhere. */
export interface Seen {
  readonly kind: InputKind;
  /** Value of the Authorization header. */
  readonly authorization: string | null;
  /** What stands behind the scheme; empty if there is nothing. */
  readonly token: string;
  /** Absolute URL, as the text that was given has it. */
  readonly url: string | undefined;
  /** Value of the Cookie header. */
  readonly cookie: string | null;
  /** Names of headers, but Authorization and DPoP, whose value looks like a token. */
  readonly otherHeaders: readonly string[];
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly proofClaims: JsonObject;
}

/** What a cause is looked for in. */
export interface Facts {
  readonly seen: Seen;
  readonly force: InForce;
  /** URL of the request as the service sees it; `undefined` if it is not known. */
  readonly externalUrl: string | undefined;
  /** What its origin and prefix are set to, whatever the request says; `undefined` if they are not set. */
  readonly pinnedUrl: string | undefined;
  /** Seconds since the epoch. */
  readonly now: number;
}

/** The elements of `aud`, those that are strings. */
export function audiencesOf({ aud }: JsonObject): readonly string[] {
  return (Array.isArray(aud) ? aud : [aud]).filter((each): each is string => typeof each === 'string');
}

/** A claim that is a list of strings, or one text with spaces between them. */
export function namesOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return value.split(' ').filter((name) => name !== '');
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
}

/** A claim that is a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Labels of the library: its options. */
export const optionLabels: SettingLabels = {
  issuer: label('issuer'),
  audience: label('audience'),
  dpopAccepted: { name: 'dpop.mode', source: undefined, set: () => "dpop: { mode: 'allowed' }" },
  trustProxy: { name: 'trustProxy', source: undefined, set: (value) => `trustProxy: ['${value}']` },
  algorithms: {
    name: 'algorithms',
    source: undefined,
    set: (value) => `algorithms: ['${value.split(',').join("', '")}']`,
  },
  externalUrl: label('externalUrl'),
  scopeClaim: label('scopeClaim'),
  permissionsClaim: label('permissionsClaim'),
  subject: label('subject'),
  clientIds: { name: 'clientIds', source: undefined, set: (value) => `clientIds: ['${value}']` },
  introspection: label('introspection'),
};

function label(name: string): SettingLabel {
  return { name, source: undefined, set: (value) => `${name}: '${value}'` };
}
