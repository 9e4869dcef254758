import { anySegment, readRuleHost, readRulePath } from '../match/rule-pattern.ts';
import { hostFix } from './schema/rule-members.ts';
import type { RuleEntry, RulesDocument, ScopeEntry } from './schema/rules-schema.ts';
import type { ParsedFile, Position, Report, ReportProblem, Step } from './text/rules-text.ts';

export interface RulesPart {
  readonly document: RulesDocument;
  readonly locate: ParsedFile['locate'];
}

export interface MergedParts extends RulesPart {
  readonly entries: readonly { readonly entry: RuleEntry; readonly at: (path: readonly Step[]) => Position }[];
}

/** Members whose names may be in several files. */
const namedMembers: ReadonlySet<string> = new Set(['issuers', 'upstreams']);

/** Merges the files of a set, and reports what they must not have in common. */
export function mergeParts(parts: readonly RulesPart[], report: Report): MergedParts {
  const owners = new Map<string, RulesPart>();
  const merged: Record<string, unknown> = {};
  const entries: MergedParts['entries'][number][] = [];
  for (const part of parts) {
    const { document, locate } = part;
    const { rules = [], scope } = document;
    for (const [member, value] of Object.entries<unknown>(document)) {
      if (member === '$schema' || member === 'scope' || member === 'rules') continue;
      if (scope !== undefined) {
        report(locate([member]), `A file with "scope" has only "rules". Move "${member}" to another file.`);
      }
      if (namedMembers.has(member)) {
        const names: Record<string, unknown> = { ...(merged[member] as object | undefined) }; // a record, by the schema
        for (const [name, each] of Object.entries(value as object)) {
          if (Object.hasOwn(names, name)) {
            report(locate([member, name]), `"${name}" is in "${member}" of another file too. Rename one of them.`);
          }
          names[name] = each;
          owners.set(`${member} ${name}`, part);
        }
        merged[member] = names;
      } else {
        if (owners.has(member)) report(locate([member]), `"${member}" is in another file too. Keep one of them.`);
        merged[member] = value;
      }
      owners.set(member, part);
    }
    for (const [index, entry] of rules.entries()) {
      const at = (path: readonly Step[]): Position => locate(['rules', index, ...path]);
      entries.push({ entry, at });
      if (scope !== undefined) checkScope(entry, scope, (path, message) => report(at(path), message));
    }
  }
  return {
    document: merged as RulesDocument, // members of documents
    entries,
    locate(path) {
      const [member = '', name = ''] = path;
      const part = owners.get(`${member} ${name}`) ?? owners.get(String(member)) ?? parts[0];
      return part?.locate(path) ?? { line: 1, column: 1 };
    },
  };
}

function checkScope({ id, hosts, path }: RuleEntry, scope: ScopeEntry, report: ReportProblem): void {
  const { idPrefix = '', hosts: limits, paths } = scope;
  if (!id.startsWith(idPrefix)) {
    report(['id'], `The id "${id}" is outside the scope of this file. Begin it with "${idPrefix}".`);
  }
  const isInHosts = (host: string): boolean => (limits ?? []).some((limit) => coversHost(limit, host));
  if (limits !== undefined && (hosts === undefined || !hosts.every(isInHosts))) {
    report(
      [hosts === undefined ? 'id' : 'hosts'],
      `The hosts of the rule "${id}" are outside the scope of this file. Write hosts of: ${limits.join(', ')}.`,
    );
  }
  if (paths !== undefined && !paths.some((limit) => coversPath(limit, path))) {
    report(
      ['path'],
      `The path of the rule "${id}" is outside the scope of this file. Write a path of: ${paths.join(', ')}.`,
    );
  }
  for (const [index, limit] of (limits ?? []).entries()) {
    if (readRuleHost(limit) === undefined) report(['hosts', index], `"${limit}" in "scope" is not valid. ${hostFix}`);
  }
}

/** Reports whether every host of one pattern matches another pattern. */
function coversHost(limit: string, host: string): boolean {
  const [outer, inner] = [readRuleHost(limit)?.pattern, readRuleHost(host)?.pattern];
  if (outer === undefined || inner === undefined) return false;
  if (outer === inner) return true;
  if (outer.startsWith('*')) return inner.replace(/^\*/, '').replace(/:\d+$/, '').endsWith(outer.slice(1));
  const [outerLabels, innerLabels] = [outer.split('.'), inner.split('.')];
  return (
    outer.includes('{}') &&
    outerLabels.length === innerLabels.length &&
    outerLabels.every((label, index) => (label === '{}' ? innerLabels[index] !== '*' : label === innerLabels[index]))
  );
}

/** Reports whether every path of one pattern matches another pattern. */
function coversPath(limit: string, path: string): boolean {
  const [outer, inner] = [readRulePath(limit), readRulePath(path)];
  if (typeof outer === 'string' || typeof inner === 'string') return false;
  const { length } = outer.segments;
  const isAsLong = outer.hasRest ? inner.segments.length >= length : inner.segments.length === length && !inner.hasRest;
  return (
    isAsLong && outer.segments.every((segment, index) => segment === anySegment || segment === inner.segments[index])
  );
}
