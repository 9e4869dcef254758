import type { JudgementRules } from './server-rules.ts';

const rulesOfServers = new WeakMap<object, JudgementRules>();

/** Records a resource server that this copy of the package has created. */
export function recordServer(server: object, rules: JudgementRules): void {
  rulesOfServers.set(server, rules);
}

/** Returns the rules of a server of this copy of the package: a copy recognises only its access. Else `TypeError`. */
export function requireOwnServer(caller: string, server: unknown): JudgementRules {
  const rules = rulesOfServers.get(Object(server));
  if (rules !== undefined) return rules;
  const { judge, describeRefusal } = Object(server) as { readonly judge?: unknown; readonly describeRefusal?: unknown };
  if (typeof judge !== 'function' || typeof describeRefusal !== 'function') {
    throw new TypeError(`${caller}: hand over what createResourceServer returned`);
  }
  throw new TypeError(
    `${caller}: this copy of portcullis has not created this resource server. Pass the object that createResourceServer ` +
      'returned, without a wrapper. If you do, two copies are installed, or a bundle contains one of them: ' +
      'find them with `npm ls portcullis`, and load both entry points from one copy.',
  );
}
