import { createMetadataAnswers, type Metadata } from '../adapters/metadata.ts';
import { Answer, createAnswer } from '../server/http/exchange.ts';
import { type Rule, type Rules, RulesError } from './match/rules.ts';

/** Metadata (RFC 9728) of the MCP servers that a gate protects. */
export type McpMetadata = ReturnType<typeof createMcpMetadata>;

/** Creates the metadata: one document for each audience of the rules with `mcp`. Throws `RulesError` for an audience that is not a URL. */
export function createMcpMetadata({ rules, issuers }: Rules) {
  const byResource = new Map<string, Rule[]>();
  for (const rule of rules.filter(({ mcp }) => mcp !== undefined)) {
    const [resource = ''] = [rule.policy.audience ?? issuers.get(rule.issuers[0] ?? '')?.rules?.audience ?? ''].flat();
    byResource.set(resource, [...(byResource.get(resource) ?? []), rule]);
  }
  const where = byResource.size === 1 ? 'both paths' : 'its own path';
  const documents = new Map<Rule, Metadata>();
  for (const [resource, group] of byResource) {
    const servers = group.flatMap((rule) => rule.issuers.flatMap((name) => issuers.get(name)?.issuer ?? []));
    const scopes = group.flatMap(({ mcp }) => mcp?.policies.scopes ?? []);
    const options = { resource, authorizationServers: [...new Set(servers)], scopesSupported: [...new Set(scopes)] };
    try {
      const metadata = createMetadataAnswers(options, where);
      for (const rule of group) documents.set(rule, metadata);
    } catch (error) {
      const problem = error instanceof TypeError ? error.message : 'the metadata cannot be written';
      throw new RulesError(`--mcp: the rule "${group[0]?.id}" has no metadata: ${problem}.`);
    }
  }
  const all = [...new Set(documents.values())];
  return {
    urlOf: (rule: Rule) => documents.get(rule)?.url,
    answer(method: string, target: string): Answer | undefined {
      const found = all.map((each) => each.answer(method, target)).find((each) => each !== undefined);
      if (found === undefined) return undefined;
      const headers = Object.entries(found.headers).flat();
      return found.body === null
        ? new Answer(found.status, headers, '')
        : createAnswer(found.status, headers, found.body);
    },
  };
}
