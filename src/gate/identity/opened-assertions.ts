import { normaliseUrl } from '../../dpop/htu.ts';
import type { createReadExternalUrl } from '../../http/external-url.ts';
import type { Connection, ResourceRequest } from '../../http/request.ts';
import { Refused } from '../../refused.ts';
import type { Access } from '../../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import type { AssertionRules, Rule, Rules } from '../rules/rules.ts';
import { RulesError } from '../rules/rules-source.ts';
import { AssertionKeyError, type AssertionKeyFiles, importAssertionKeys } from './assertion-keys.ts';
import { type Assertions, createAssertions, type SignedAssertion } from './assertions.ts';

export interface OpenedAssertions extends Partial<Assertions> {
  readonly jwks: string;
}

/**
 * Opens the assertions of a set of rules; `undefined` if it has none. Throws `RulesError` for an unusable key, or if a
 * rule sends assertions and no key signs them.
 */
export function openAssertions(rules: Rules, files: AssertionKeyFiles | undefined): OpenedAssertions | undefined {
  if (rules.assertion === undefined) return undefined;
  const { signer, jwks } = importKeys(files ?? { signing: undefined, published: [] });
  const sends = rules.rules.some(({ assertion }) => assertion !== undefined);
  if (signer === undefined) {
    if (sends) throw new RulesError('The rules send assertions. Set ASSERTION_KEY to a PEM file with the signing key.');
    return { jwks };
  }
  const { issuer, lifetime, claims }: AssertionRules = rules.assertion;
  return { jwks, ...createAssertions({ signer, issuer, lifetime, claims }) };
}

function importKeys(files: AssertionKeyFiles) {
  try {
    return importAssertionKeys(files);
  } catch (error) {
    if (error instanceof AssertionKeyError) throw new RulesError(error.message);
    throw error;
  }
}

/** Writes the assertion of an admitted request; `undefined` if its rule sends none. Throws `Refused` if its URL is unknown. */
type SignIdentity = (
  rule: Rule,
  access: Access<RegisteredClaims>,
  request: ResourceRequest,
  connection: Connection | undefined,
) => SignedAssertion | undefined;

/** Creates the writer of assertions for requests; `readCalledUrl` reads the URL that the client called. */
export function createSignIdentity(
  assertions: OpenedAssertions,
  readCalledUrl: ReturnType<typeof createReadExternalUrl>,
): SignIdentity {
  return ({ id, assertion }, access, request, connection) => {
    if (assertion === undefined || assertions.write === undefined) return undefined;
    const target = { rule: id, audience: assertion.audience };
    if (!assertion.isBound) return assertions.write(access, target);
    const url = readCalledUrl(request, connection);
    if (url instanceof Refused) throw url;
    return assertions.write(access, target, { method: request.method, url: normaliseUrl(url.origin + url.path) ?? '' });
  };
}
