import { docsUrl, type Failure, failures, type Reason } from '../../core/failures.ts';
import { causes } from '../../explain/causes/causes.ts';
import { formatFix, nameSettings } from '../../server/settings/setting-names.ts';
import { variants } from '../../server/variants/variants.ts';
import { doctorChecks, findings } from '../doctor/finding.ts';

export function isReason(text: string): text is Reason {
  return Object.hasOwn(failures, text);
}

/** The section of a reason in docs/refusals.md, and the output of `portcullis explain REASON`. */
export function formatReasonPage(reason: Reason): string {
  const failure: Failure = failures[reason];
  const status =
    failure.error === 'insufficient_scope'
      ? `${failure.status} (variant B: ${variants.b.insufficientScopeStatus})`
      : String(failure.status);
  const error = failure.error === null ? 'no error code' : `\`${failure.error}\``;
  return `### ${reason}\n\n${status}, ${error}: “${failure.description}”\n\n${formatFix(failure, nameSettings({ variant: variants.a }))}`;
}

export const pageNames: readonly string[] = [
  ...Object.keys(failures),
  ...new Set(causes.map(({ id }) => id)),
  ...Object.keys(doctorChecks),
  ...Object.keys(findings),
];

export function formatPage(name: string): string | undefined {
  if (isReason(name)) return formatReasonPage(name);
  const named = causes.filter(({ id }) => id === name);
  if (named.length > 0) {
    const page = named.map(
      ({ reasons, meaning, fix }) => `${meaning}\n\nFix: ${fix}\n\nNamed for: ${reasons.join(', ')}`,
    );
    return `### ${name}\n\n${page.join('\n\n')}\n\n${docsUrl}causes.md#${name}`;
  }
  const check = new Map<string, string>(Object.entries(doctorChecks)).get(name);
  if (check !== undefined) return `### ${name}\n\nCheck of portcullis doctor: ${check}\n\n${docsUrl}explain.md#doctor`;
  const finding = new Map(Object.entries(findings)).get(name);
  if (finding === undefined) return undefined;
  const level = finding.level === 'fail' ? 'Failure' : 'Warning';
  return `### ${name}\n\n${level} of portcullis doctor: ${finding.meaning}\n\n${docsUrl}explain.md#${name}`;
}
