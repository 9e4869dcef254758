import { bindingForm } from '../match/rule-host.ts';
import type { Rules } from '../rules/rules.ts';
import { type RulesFile, readParts } from '../rules/rules-reader.ts';
import { mergeParts } from '../rules/rules-set.ts';
import type { RuleEntry } from '../rules/schema/rules-schema.ts';
import type { Position } from '../rules/text/rules-text.ts';
import { createRuleSamples } from './rule-samples.ts';
import { describeUnreachable, findUnreachable, fixUnreachable } from './unreachable-rules.ts';
import { describeWeaker, findWeaker, fixWeaker } from './weaker-rules.ts';

export interface RuleWarning extends Position {
  readonly kind: 'unreachable' | 'weaker' | 'placeholder' | 'upstream';
  readonly seen: string;
  readonly fix: string;
}

type FoundWarning = Pick<RuleWarning, 'kind' | 'seen' | 'fix'> & { readonly index: number };

/** Finds the warnings of a file or set, in the order of its rules. The file was read as these rules. */
export async function findRuleWarnings(file: RulesFile, rules: Rules): Promise<readonly RuleWarning[]> {
  const read = await readParts(file.files ?? [file], file.files !== undefined);
  if (read.kind === 'problems') return [];
  const merged = mergeParts(read.parts, () => {});
  const entries = merged.entries.map(({ entry }) => entry);
  const samples = createRuleSamples(entries, rules);
  const found: readonly FoundWarning[] = [
    ...findUnreachable(entries, samples).map((each) => ({
      kind: 'unreachable' as const,
      ...{ index: each.index, seen: describeUnreachable(each), fix: fixUnreachable(each) },
    })),
    ...findWeaker(entries, rules, samples).map((each) => ({
      kind: 'weaker' as const,
      ...{ index: each.index, seen: describeWeaker(each), fix: fixWeaker(each) },
    })),
    ...findPlaceholders(entries),
    ...(rules.upstreams.size === 0 ? [] : findWithoutUpstream(entries)),
  ];
  return found
    .toSorted((a, b) => a.index - b.index)
    .flatMap(({ index, ...warning }) => {
      const position = merged.entries[index]?.at([]);
      return position === undefined ? [] : [{ ...warning, ...position }];
    });
}

/** Placeholders of other routers, which are literals here. */
const placeholder = /^(?::[A-Za-z_]\w*[?*+]?|<[^>]+>|\[.*\][*+?]?|\(.*\)[*+?]?|\$\{?\w+\}?|\.\*)$/;

export function findPlaceholders(
  entries: readonly { readonly id: string; readonly path: string; readonly hosts?: readonly string[] | undefined }[],
): readonly FoundWarning[] {
  return entries.flatMap(({ id, path, hosts = [] }, index) => {
    const parts = [...path.split('/'), ...hosts.flatMap((host) => host.split('.'))];
    const literal = parts.find((part) => placeholder.test(part) && !bindingForm.test(part));
    if (literal === undefined) return [];
    return [
      {
        ...{ kind: 'placeholder' as const, index },
        seen: `"${literal}" in the rule "${id}" is a literal`,
        fix: 'Write {name} or * for any one segment.',
      },
    ];
  });
}

function findWithoutUpstream(entries: readonly RuleEntry[]): readonly FoundWarning[] {
  return entries.flatMap(({ id, access, upstream }, index) =>
    access === 'deny' || upstream !== undefined
      ? []
      : [
          {
            ...{ kind: 'upstream' as const, index },
            seen: `the rule "${id}" names no upstream, so it needs UPSTREAM`,
            fix: 'Add "upstream", or set UPSTREAM.',
          },
        ],
  );
}
