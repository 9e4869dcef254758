import { checks } from '../../src/core/checks.ts';
import type { Reason } from '../../src/core/failures.ts';

/** Reasons of refusals before or after the checks: the keys are missing, or the service or the gate refuses. */
export const reasonsWithoutCheck: readonly Reason[] = [
  'keys_unavailable',
  'introspection_unavailable',
  'unexpected',
  'audit_unavailable',
  'unmet_expectation',
  'ambiguous_path',
  'ambiguous_request',
  'no_rule',
  'denied_by_rule',
  'untrusted_peer',
  'upstream_unavailable',
  'upstream_overloaded',
  'upstream_timeout',
  'upload_timeout',
  'assertion_request_mismatch',
  'too_many_messages',
  'exchange_refused',
  'exchange_unavailable',
];

/** Reasons that a dry run of the library cannot find: it uses up no proof, and reads no message and no condition. */
export const reasonsOutsideDryRun: readonly Reason[] = [
  ...reasonsWithoutCheck,
  ...[checks.condition, checks.replay, checks.mcp_message, checks.mcp_headers, checks.mcp_operation].flatMap(
    ({ reasons }) => reasons,
  ),
];
