import { type CheckId, checks } from '../checks.ts';
import { checkPolicy, isCombined, registerPolicy } from '../policy/checked-policy.ts';
import type { Combination, PlainCombinedPolicy, Policy } from '../policy/policy.ts';
import { Refused } from '../refused.ts';
import type { CheckedPolicy } from '../token/token-policy.ts';
import { createOperationTable, type OperationMaps } from './operation-table.ts';
import { type Operation, operationKinds } from './operations.ts';

export type OperationPolicies = ReturnType<typeof createOperationPolicies>;

type CheckedEntry = { readonly key: string; readonly policy: Policy<unknown>; readonly checked: CheckedPolicy };

/** Compiles the entries, each with what `policy` implies. */
function compileEntries(options: OperationMaps<Policy<unknown>>, policy: Policy<unknown>): OperationMaps<CheckedEntry> {
  const compile = ([key, entry]: [string, Policy<unknown>]): [string, CheckedEntry] => {
    const implied = imply(entry, policy);
    return [key, { key, policy: implied, checked: checkPolicy(implied) }];
  };
  const given = operationKinds.flatMap((kind) => {
    const entries = options[kind];
    return entries === undefined ? [] : [[kind, Object.fromEntries(Object.entries(entries).map(compile))]];
  });
  return Object.fromEntries(given);
}

export function createOperationPolicies({
  policy,
  ...options
}: OperationMaps<Policy<unknown>> & { readonly policy: Policy<unknown> }) {
  const common = checkPolicy(policy);
  const maps = compileEntries(options, policy);
  const find = createOperationTable(maps);
  const all = Object.values(maps).flatMap((entries) => Object.values(entries ?? {}));
  const unite = (entries: readonly CheckedEntry[]): readonly string[] => [
    ...new Set([...common.scopes, ...entries.flatMap(({ checked }) => checked.scopes)]),
  ];
  /** Each entry with the first operation that it decides; or the first operation without an entry, or its refusal. */
  const match = (operations: readonly Operation[]): Map<CheckedEntry, Operation> | Operation | Refused => {
    const entries = new Map<CheckedEntry, Operation>();
    for (const operation of operations) {
      const entry = find(operation);
      if (entry === undefined || entry instanceof Refused) return entry ?? operation;
      if (!entries.has(entry)) entries.set(entry, operation);
    }
    return entries;
  };
  const hasEntries = Object.keys(maps).length > 0;

  return {
    scopes: unite(all),
    hasEntries,
    /**
     * Creates the policy of one request: `policy`, then the entries of its operations. The message is read only if the token
     * satisfies `policy`; the replay store is queried only if all entries hold.
     */
    requestPolicy(read: () => Promise<readonly Operation[] | Refused>): Policy<unknown> {
      if (!hasEntries) return policy;
      // The challenge of a refused token names the scopes of `policy`; after the message is read, also the scopes of its entries.
      let scopes = common.scopes;
      return registerPolicy({
        ...common,
        get scopes() {
          return scopes;
        },
        async judge(facts) {
          const given = await common.judge(facts);
          if (given instanceof Refused) return given;
          const operations = await read();
          if (operations instanceof Refused) return operations;
          const entries = match(operations);
          if (entries instanceof Refused) return entries;
          if (!(entries instanceof Map)) return new Refused('no_operation_policy');
          const found = [...entries.keys()];
          scopes = unite(found);
          for (const { checked } of found) {
            const verdict = await checked.judge(facts);
            if (verdict instanceof Refused) return verdict;
          }
          return given;
        },
      });
    },
    /** The policy of a message that was read, as parts for an explanation. */
    explainedPolicy(operations: readonly Operation[] | Refused): Policy<unknown> {
      const combine = (...parts: readonly Policy<unknown>[]) =>
        ({ mode: 'all', policies: [policy, ...parts] }) as unknown as PlainCombinedPolicy; // the schema of `policy` is not read
      const entries = operations instanceof Refused ? operations : match(operations);
      if (entries instanceof Refused) return combine(...explainRefusal(entries));
      if (entries instanceof Map) {
        const found = [...entries].map(([{ key }, operation]) =>
          createStage('mcp_operation', undefined, `${nameOperation(operation)}, entry ${key}`),
        );
        return combine(...found, ...[...entries.keys()].map((entry) => entry.policy));
      }
      const map = maps[entries.kind];
      const expected = map === undefined ? `a map of ${entries.kind}` : Object.keys(map).join(', ');
      const context = { expected, received: nameOperation(entries) };
      return combine(createStage('mcp_operation', new Refused('no_operation_policy', { context })));
    },
  };
}

/** Explains a message that could not be read; nothing for an overload or a timeout, which no check decides. */
function explainRefusal(refusal: Refused): readonly Policy<unknown>[] {
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

function imply(entry: Policy<unknown>, common: Policy<unknown>): Policy<unknown> {
  if (!('implies' in common) || common.implies === undefined || typeof entry !== 'object') return entry;
  if (isCombined(entry)) {
    const { mode, policies } = entry as unknown as Combination; // its type hides them
    return { mode, policies: policies.map((each) => imply(each, common)) } as unknown as PlainCombinedPolicy; // as before
  }
  return { ...entry, implies: { ...common.implies, ...entry.implies } };
}
