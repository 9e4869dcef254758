import { isCombined } from '../../core/policy/checked-policy.ts';
import type { Policy } from '../../core/policy/policy.ts';
import type { RouteView } from './wire.ts';

export function describePolicy(
  policy: Policy<unknown>,
  more: readonly string[] = [],
): Pick<RouteView, 'needs' | 'scope' | 'permissions'> {
  if (isCombined(policy)) return { needs: ['several policies'], scope: '', permissions: [] };
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
