import type { ParsedFile, Path, Report } from './rules-text.ts';
import type { RulesDocument } from './schema/rules-schema.ts';

export interface RulesPart {
  readonly document: RulesDocument;
  readonly locate: ParsedFile['locate'];
}

/** Members whose names may be in several files. */
const namedMembers: ReadonlySet<string> = new Set(['issuers', 'upstreams']);

/** Merges the files of a set, and reports what they must not have in common. */
export function mergeParts(parts: readonly RulesPart[], report: Report) {
  const owners = new Map<string, RulesPart>();
  const merged: Record<string, unknown> = {};
  for (const part of parts) {
    const { document, locate } = part;
    for (const [member, value] of Object.entries<unknown>(document)) {
      if (member === '$schema' || member === 'rules') continue;
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
  }
  const entries = parts.flatMap(({ document: { rules = [] }, locate }) =>
    rules.map((entry, index) => ({ entry, at: (path: Path) => locate(['rules', index, ...path]) })),
  );
  return {
    document: merged as RulesDocument, // members of documents
    entries,
    locate(path: Path) {
      const [member = '', name = ''] = path;
      const part = owners.get(`${member} ${name}`) ?? owners.get(String(member)) ?? parts[0];
      return part?.locate(path) ?? { line: 1, column: 1 };
    },
  };
}
