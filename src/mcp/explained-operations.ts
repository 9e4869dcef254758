import { type CheckId, checks } from '../checks.ts';
import { registerPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import { Refused } from '../refused.ts';
import type { Operation } from './operations.ts';

/** Explains an operation by the key of its entry. */
export function explainEntry(operation: Operation, key: string): Policy<unknown> {
  return createStage('mcp_operation', undefined, `${nameOperation(operation)}, entry ${key}`);
}

/** Explains an operation without an entry. */
export function explainMissing(operation: Operation, entries: object | undefined): Policy<unknown> {
  const expected = entries === undefined ? `a map of ${operation.kind}` : Object.keys(entries).join(', ');
  const context = { expected, received: nameOperation(operation) };
  return createStage('mcp_operation', new Refused('no_operation_policy', { context }));
}

/** Explains a message that could not be read; nothing for an overload or a timeout, which no check decides. */
export function explainRefusal(refusal: Refused): readonly Policy<unknown>[] {
  const ids = ['mcp_message', 'mcp_headers'] as const;
  return ids.filter((id) => checks[id].reasons.includes(refusal.reason)).map((id) => createStage(id, refusal));
}

function createStage(id: CheckId, refusal: Refused | undefined, received = ''): Policy<unknown> {
  const made = { of: 'stage', id, refusal, received } as const;
  return registerPolicy({ scopes: [], hasSchema: false, made, judge: () => refusal });
}

function nameOperation({ kind, name = 'without a name' }: Operation): string {
  return `${kind} ${name}`;
}
