import { describePolicy } from '../server/console/route-views.ts';
import type { RouteView } from '../server/console/wire.ts';
import type { Endpoint } from '../server/variants/endpoints.ts';

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
