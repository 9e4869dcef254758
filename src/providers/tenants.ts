import { attempt } from '../core/attempt.ts';
import type { IssuerFinder } from '../core/resource-server/issuers/issuer-finder.ts';
import type { IssuerRuleOptions } from '../core/resource-server/issuers/trusted-issuer.ts';
import { fillIn, type PresetIssuer, type PresetValues, type ProviderPreset, requirePlain } from './provider-preset.ts';

const maxTenants = 10_000;

/**
 * Creates a finder for the tenants of one provider, for `issuers` of a resource server: `accepts` is called with the values that
 * `iss` has for the names in braces of the preset, and returns `true` for a tenant that is trusted, or a promise. `iss` is
 * not verified at that time: any client can write any tenant there. Every result but `true` refuses the token.
 *
 * @example
 * const server = createResourceServer({
 *   issuers: findTenants(entraV2, ({ tenant }) => customers.has(tenant), { audience: clientId }),
 * });
 */
export function findTenants<const P extends ProviderPreset, const R extends IssuerRuleOptions>(
  preset: P,
  accepts: (values: PresetValues<P>) => boolean | PromiseLike<boolean>,
  rules: R,
): IssuerFinder<PresetIssuer<P, R>> {
  if (typeof accepts !== 'function') throw new TypeError('findTenants: write a function that accepts tenants');
  requirePlain(rules);
  const parts = preset.issuer.split(/\{(\w+)\}/);
  const names = parts.filter((_, index) => index % 2 === 1);
  if (names.length === 0) throw new TypeError(`findTenants: ${preset.name} has one issuer for all; use fillIn`);
  const form = new RegExp(
    `^${parts.map((part, index) => (index % 2 === 1 ? '([^/]+)' : escapePattern(part))).join('')}$`,
  );
  // The same object for the same tenant: the token cache compares rules as objects.
  const known = new Map<string, PresetIssuer<P, R>>();

  return {
    async find(iss) {
      const found = form.exec(iss);
      if (found === null) return undefined;
      const values = Object.fromEntries(names.map((name, index) => [name, found[index + 1]])) as PresetValues<P>; // its names
      // It throws for a value that is not a tenant of this provider.
      const issuer = known.get(iss) ?? attempt(() => fillIn(preset, values, rules));
      if (issuer === undefined || (await accepts(values)) !== true) return undefined;
      // The used one is the newest, and leaves room for itself.
      known.delete(iss);
      const [oldest] = known.keys();
      if (known.size >= maxTenants && oldest !== undefined) known.delete(oldest);
      known.set(iss, issuer);
      return issuer;
    },
  };
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
