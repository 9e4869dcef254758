import { createMetadataAnswers, type Metadata, type MetadataAnswer } from '../adapters/metadata.ts';
import { metadataPath } from '../refusal/challenge.ts';
import type { ErrorBodyFormat } from '../refusal/error-body.ts';
import { Answer, createAnswer, plainError } from '../server/http/answer.ts';
import type { StreamApp } from '../server/http/exchange.ts';
import type { Rule, Rules } from './rules/rules.ts';
import { RulesError } from './rules/rules-source.ts';

/** Metadata (RFC 9728) of the MCP servers that a gate protects. */
export interface McpMetadata {
  urlOf(rule: Rule): string | undefined;
  answer(method: string, target: string): MetadataAnswer | undefined;
}

/** Creates the metadata: one document for each audience of the rules with `mcp`. Throws `RulesError` for an audience that is not a URL. */
export function createMcpMetadata({ rules, issuers }: Rules): McpMetadata {
  const byResource = new Map<string, Rule[]>();
  for (const rule of rules.filter(({ mcp }) => mcp !== undefined)) {
    const resource = readResource(rule, issuers);
    byResource.set(resource, [...(byResource.get(resource) ?? []), rule]);
  }
  const where = byResource.size === 1 ? 'both paths' : 'its own path';
  const documents = new Map<Rule, Metadata>();
  for (const [resource, group] of byResource) {
    const names = group.flatMap((rule) => rule.issuers);
    const scopes = group.flatMap(({ mcp }) => mcp?.policies.scopes ?? []);
    try {
      const options = {
        resource,
        authorizationServers: [...new Set(names.flatMap((name) => issuers.get(name)?.issuer ?? []))],
        scopesSupported: [...new Set(scopes)],
      };
      const metadata = createMetadataAnswers(options, where);
      for (const rule of group) documents.set(rule, metadata);
    } catch (error) {
      const problem = error instanceof TypeError ? error.message : 'the metadata cannot be written';
      throw new RulesError(`--mcp: the rule "${group[0]?.id}" has no metadata: ${problem}.`);
    }
  }
  const all = [...new Set(documents.values())];
  return {
    urlOf: (rule) => documents.get(rule)?.url,
    answer: (method, target) => all.map((each) => each.answer(method, target)).find((each) => each !== undefined),
  };
}

function readResource({ issuers: [name = ''], policy }: Rule, issuers: Rules['issuers']): string {
  const [audience = ''] = [policy.audience ?? issuers.get(name)?.rules?.audience ?? ''].flat();
  return audience;
}

/** Serves the metadata on any host and to any peer, before the rules. */
export function serveMcpMetadata(
  app: StreamApp,
  current: () => McpMetadata | undefined,
  errorBody: ErrorBodyFormat,
): StreamApp {
  const notAllowed = plainError(errorBody, 405);
  return (exchange, target, wire) => {
    if (!target.startsWith(metadataPath)) return app(exchange, target, wire);
    const { method } = exchange.request;
    const answer = current()?.answer(method === 'HEAD' ? 'GET' : method, target);
    if (answer === undefined) return app(exchange, target, wire);
    const headers = Object.entries(answer.headers).flat();
    if (answer.status === 405) return notAllowed.with(...headers);
    return answer.body === null
      ? new Answer(answer.status, headers, '', true)
      : createAnswer(answer.status, headers, answer.body);
  };
}
