import type { ResourceRequest } from '../http/request.ts';
import type { Policy } from '../policy/policy.ts';
import type { Gathered } from '../resource-server/dry-run.ts';
import { type Facts, type InForce, optionLabels, type SettingLabels } from './facts.ts';
import type { InputKind } from './input/input.ts';
import { readUnverified } from './unverified.ts';

/** What the caller of an explanation adds to the rules. */
export interface ForceOptions {
  readonly labels?: SettingLabels;
  readonly domainHasScheme?: boolean;
}

/** Headers besides Authorization that people put tokens into. */
const otherHeaders = [
  'X-Access-Token',
  'X-Auth-Token',
  'X-Authorization',
  'Access-Token',
  'Token',
  'X-Api-Key',
  'X-Forwarded-Access-Token',
];
const tokenLike = /^(?:bearer )?ey[\w-]+\.[\w-]+\.[\w-]*$/i;

/** Texts that must not be shown, nor a part of them. */
export function secretsOf({ headers, url }: ResourceRequest): readonly string[] {
  const values = ['authorization', 'dpop', 'cookie', ...otherHeaders].map((name) => headers.get(name) ?? '');
  const end = url.search(/[?#]/);
  const query = end < 0 ? '' : url.slice(end);
  // A scheme and a space are no secret, and parts of a token are.
  return [...values.flatMap((value) => value.split(/[\s.,;]+/)), ...query.split(/[?&=#]/)];
}

/** The rules in force, as far as causes look at them. */
export function readForce(
  { rules, issuer, trusted: found }: Gathered,
  policy: Policy<unknown>,
  options: ForceOptions,
): InForce {
  const trusted = [...(found?.issuers.values() ?? [])];
  const { scopes = [], anyScope = [], permissions = [] } = 'policies' in policy ? {} : policy;
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
    labels: options.labels ?? optionLabels,
  };
}

/** What was seen of the call, for the causes. */
export function readFacts(
  { headers, url }: ResourceRequest,
  sight: Gathered,
  { force, now, kind }: { readonly force: InForce; readonly now: number; readonly kind: InputKind },
): Facts {
  const authorization = headers.get('authorization');
  const token = sight.credentials?.token ?? (authorization ?? '').replace(/^[^\s]*\s*/, '');
  const unverified = readUnverified(token);
  return {
    seen: {
      kind,
      authorization,
      token,
      url,
      cookie: headers.get('cookie'),
      otherHeaders: otherHeaders.filter((name) => tokenLike.test(headers.get(name) ?? '')),
      header: sight.header ?? unverified.header,
      claims: sight.claims ?? unverified.claims,
      proofClaims: sight.proofClaims ?? {},
    },
    force,
    externalUrl: sight.url === undefined ? undefined : `${sight.url.origin}${sight.url.path}`,
    pinnedUrl: sight.url?.pinned,
    now,
  };
}
