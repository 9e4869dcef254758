import { readRuleHost } from '../match/rule-host.ts';
import { anySegment } from '../match/rule-matcher.ts';
import { readRulePath } from '../match/rule-path.ts';
import { hostFix } from './schema/rule-members.ts';
import type { RuleEntry, RulesDocument, ScopeEntry } from './schema/rules-schema.ts';
import type { ParsedFile, Position, ReportProblem, Step } from './text/rules-text.ts';

export interface RulesPart {
  readonly document: RulesDocument;
  readonly locate: ParsedFile['locate'];
}

interface PlacedRule {
  readonly entry: RuleEntry;
  readonly at: (path: readonly Step[]) => Position;
}

export interface MergedParts {
  readonly document: RulesDocument;
  readonly entries: readonly PlacedRule[];
  readonly locate: ParsedFile['locate'];
}

const named = ['issuers', 'upstreams'] as const;
const scopedMembers: ReadonlySet<string> = new Set(['$schema', 'scope', 'rules']);

/** Merges the files of a set, and reports what they must not have in common. */
export function mergeParts(
  parts: readonly RulesPart[],
  report: (position: Position, message: string) => void,
): MergedParts {
  const owners = new Map<string, RulesPart>();
  const merged: Record<string, unknown> = {};
  const entries: PlacedRule[] = [];
  for (const part of parts) {
    const { document, locate } = part;
    const { rules = [], ...members } = document;
    for (const [member, value] of Object.entries(members)) {
      if (member === '$schema' || member === 'scope') continue;
      if (document.scope !== undefined && !scopedMembers.has(member)) {
        report(locate([member]), `A file with "scope" has only "rules". Move "${member}" to another file.`);
      }
      const names = named.find((each) => each === member);
      const isNew = owners.get(member) === undefined;
      if (names === undefined) {
        if (!isNew) report(locate([member]), `"${member}" is in another file too. Keep one of them.`);
        merged[member] = value;
        owners.set(member, part);
        continue;
      }
      owners.set(member, part);
      const known = (merged[member] ?? {}) as Record<string, unknown>; // a record, by the schema
      for (const [name, each] of Object.entries(value as object)) {
        if (Object.hasOwn(known, name)) {
          report(locate([member, name]), `"${name}" is in "${member}" of another file too. Rename one of them.`);
        }
        known[name] = each;
        owners.set(`${member} ${name}`, part);
      }
      merged[member] = { ...known };
    }
    for (const [index, entry] of rules.entries()) {
      const at = (path: readonly Step[]): Position => locate(['rules', index, ...path]);
      entries.push({ entry, at });
      if (document.scope !== undefined) checkScope(entry, document.scope, (path, message) => report(at(path), message));
    }
  }
  return {
    document: merged as RulesDocument, // members of documents
    entries,
    locate: (path) => {
      const [member = '', name = ''] = path;
      const part = owners.get(`${member} ${name}`) ?? owners.get(String(member)) ?? parts[0];
      return part?.locate(path) ?? { line: 1, column: 1 };
    },
  };
}

function checkScope({ id, hosts, path }: RuleEntry, scope: ScopeEntry, report: ReportProblem): void {
  if (scope.idPrefix !== undefined && !id.startsWith(scope.idPrefix)) {
    report(['id'], `The id "${id}" is outside the scope of this file. Begin it with "${scope.idPrefix}".`);
  }
  const isInHosts = (host: string): boolean => (scope.hosts ?? []).some((limit) => coversHost(limit, host));
  if (scope.hosts !== undefined && (hosts === undefined || !hosts.every(isInHosts))) {
    report(
      [hosts === undefined ? 'id' : 'hosts'],
      `The hosts of the rule "${id}" are outside the scope of this file. Write hosts of: ${scope.hosts.join(', ')}.`,
    );
  }
  if (scope.paths !== undefined && !scope.paths.some((limit) => coversPath(limit, path))) {
    report(
      ['path'],
      `The path of the rule "${id}" is outside the scope of this file. Write a path of: ${scope.paths.join(', ')}.`,
    );
  }
  for (const [index, limit] of (scope.hosts ?? []).entries()) {
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
