import type { RouteView } from '../page/wire.ts';
import type { Rule, Rules } from '../../gate/rules/rules.ts';
import type { Policy } from '../../policy/policy.ts';
import type { Endpoint } from '../../serve/variants/endpoint.ts';

/** The endpoints of the service, for a person to look at. */
export function describeEndpoints(endpoints: readonly Endpoint[]): readonly RouteView[] {
  return endpoints.map(({ path, access }) => ({
    id: path,
    kind: 'route',
    path,
    hosts: [],
    methods: ['GET', 'HEAD'],
    access: access === 'open' ? 'open' : 'token',
    mode: 'enforce',
    ...(access === 'open' ? describePolicy({}) : describePolicy(access)),
  }));
}

/** The rules of the gate, for a person to look at. */
export function describeRules(rules: Rules | undefined): readonly RouteView[] {
  return (rules?.rules ?? []).map((rule) => ({
    id: rule.id,
    kind: 'rule',
    path: rule.path,
    hosts: rule.hosts,
    methods: rule.methods,
    access: rule.access,
    mode: rule.mode,
    ...describePolicy(rule.policy, describeOwn(rule, rules?.issuers.size ?? 0)),
  }));
}

/** What a rule asks for besides its policy. */
function describeOwn({ issuers, dpop }: Rule, known: number): readonly string[] {
  return [
    ...(issuers.length > 0 && known > 1 ? [`issuer ${issuers.join(' or ')}`] : []),
    ...(dpop === undefined ? [] : [`DPoP ${dpop}`]),
  ];
}

function describePolicy(
  policy: Policy<unknown>,
  more: readonly string[] = [],
): Pick<RouteView, 'needs' | 'scope' | 'permissions'> {
  if ('policies' in policy) return { needs: ['several policies'], scope: '', permissions: [] };
  const { scopes = [], anyScope = [], permissions = [], audience, acr, maxAge, claims } = policy;
  return {
    needs: [
      ...scopes.map((scope) => `scope ${scope}`),
      ...(anyScope.length > 0 ? [`one of the scopes ${anyScope.join(', ')}`] : []),
      ...permissions.map((permission) => `permission ${permission}`),
      ...(audience === undefined ? [] : [`audience ${[audience].flat().join(' or ')}`]),
      ...(acr === undefined ? [] : [`acr ${[acr].flat().join(' or ')}`]),
      ...(maxAge === undefined ? [] : [`sign-in at most ${maxAge} s ago`]),
      ...(claims === undefined ? [] : ['claims of a certain form']),
      ...more,
    ],
    scope: [...scopes, ...anyScope.slice(0, 1)].join(' '),
    permissions,
  };
}
