import { isPlain } from '../core/option-members.ts';
import type { TokenRuleOptions } from '../core/resource-server/issuers/token-rules.ts';
import type { IssuerRuleOptions, TrustedIssuer } from '../core/resource-server/issuers/trusted-issuer.ts';

/** Data shared by every customer of a provider. */
export interface ProviderPreset {
  /** For people. */
  readonly name: string;
  /** The issuer, with names in braces for each customer's values. */
  readonly issuer: string;
  /** Address of the keys, if discovery is not at the issuer. It can have names in braces, too. */
  readonly jwksUri?: string;
  /** Required form of some values: a pattern, and its description. */
  readonly forms?: Readonly<Record<string, { readonly pattern: string; readonly fix: string }>>;
  /** Rules for the tokens of this provider. */
  readonly rules: Pick<
    TokenRuleOptions,
    'algorithms' | 'clientIdClaim' | 'scopeClaim' | 'permissionsClaim' | 'subject'
  >;
}

/** The names in braces of an issuer. */
type NamesIn<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

/** The strings of a preset that have names in braces. */
type Templates<P extends ProviderPreset> =
  | P['issuer']
  | (P extends { readonly jwksUri: infer J extends string } ? J : never);

/** A value for each name in braces of a preset. */
export type PresetValues<P extends ProviderPreset> = Readonly<Record<NamesIn<Templates<P>>, string>>;

/** An issuer that came from a preset, with the rules of both. */
export interface PresetIssuer<P extends ProviderPreset, R extends IssuerRuleOptions> extends TrustedIssuer {
  /** Rules of the preset, and your own. */
  readonly rules: P['rules'] & R;
}

const placeholder = /\{(\w+)\}/g;
/** A host with or without a port, or one segment of a path. */
const valueGrammar = /^[a-z0-9_-][\w.~-]*(?::\d{1,5})?$/i;

/**
 * Makes the issuer of one customer out of a preset: for `issuers` of a resource server. `rules` are laid over those of the
 * preset. Throws `TypeError` for values that are not of the preset, or do not fit into an issuer.
 *
 * @example
 * const issuer = fillIn(keycloak, { host: 'id.example', realm: 'main' });
 * const server = createResourceServer({ issuers: [issuer], audience: 'orders' });
 */
export function fillIn<const P extends ProviderPreset, const R extends IssuerRuleOptions = Record<never, never>>(
  preset: P,
  values: PresetValues<P>,
  rules?: R,
): PresetIssuer<P, R> {
  requirePlain(rules);
  const given = new Map(Object.entries<unknown>(values));
  const { jwksUri = '' } = preset;
  const names = [...`${preset.issuer} ${jwksUri}`.matchAll(placeholder)].map(([, name = '']) => name);
  for (const name of given.keys()) {
    if (!names.includes(name))
      throw new TypeError(`${preset.name}: there is no ${name}; write any of ${[...new Set(names)].join(', ')}`);
  }
  const fill = (template: string): string =>
    template.replace(placeholder, (_, name: string) => readValue(preset, name, given.get(name)));
  const issuer = fill(preset.issuer);
  if (!URL.canParse(issuer)) throw new TypeError(`${preset.name}: the values do not make an issuer`);
  const merged = { ...preset.rules, ...rules } as P['rules'] & R; // what is laid over is of the same type, or narrower
  return { issuer, ...(jwksUri !== '' && { jwksUri: fill(jwksUri) }), rules: merged };
}

/** Throws `TypeError` for rules that are an object of a class, such as a promise: their policy would be lost. */
export function requirePlain(rules: unknown): void {
  if (rules !== undefined && !isPlain(rules)) throw new TypeError('rules: write a plain object; await a promise first');
}

/** The value is not repeated: it may be a secret that was pasted into the wrong field. */
function readValue({ name: provider, forms = {} }: ProviderPreset, name: string, value: unknown): string {
  if (typeof value !== 'string' || !valueGrammar.test(value)) {
    throw new TypeError(`${provider}: write ${name} without a scheme and slashes, as in {${name}} of the issuer`);
  }
  const form = Object.hasOwn(forms, name) ? forms[name] : undefined;
  if (form !== undefined && !new RegExp(form.pattern).test(value)) throw new TypeError(`${provider}: ${form.fix}`);
  return value;
}
