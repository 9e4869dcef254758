import { type Failure, failures, type Reason } from '../../failures.ts';
import { formatFix, nameSettings } from '../../server/settings/setting-names.ts';
import { variants } from '../../server/variants/variants.ts';

/** Whether a text is the name of a reason. */
export function isReason(text: string): text is Reason {
  return Object.hasOwn(failures, text);
}

/** What docs/refusals.md says of a reason, and `portcullis explain REASON`. */
export function formatReasonPage(reason: Reason): string {
  const failure: Failure = failures[reason];
  const status =
    failure.error === 'insufficient_scope'
      ? `${failure.status} (variant B: ${variants.b.insufficientScopeStatus})`
      : String(failure.status);
  const error = failure.error === null ? 'no error code' : `\`${failure.error}\``;
  return `### ${reason}\n\n${status}, ${error}: “${failure.description}”\n\n${formatFix(failure, nameSettings({ variant: variants.a }))}`;
}
