import { isJsonObject, type JsonObject } from '../jose/json.ts';
import type { Refused } from '../refused.ts';

export const operationKinds = ['tools', 'resources', 'prompts'] as const;
export type OperationKind = (typeof operationKinds)[number];

export interface Operation {
  readonly kind: OperationKind;
  /** Name of the tool or prompt, or URI of the resource; `undefined` if the message has none. */
  readonly name: string | undefined;
  /** True for a URI template. Default: a URI. */
  readonly isTemplate?: boolean;
}

/** Operations of a request, and the id that an error response repeats. */
export interface ReadMessage {
  readonly operations: readonly Operation[] | Refused;
  /** JSON-RPC id of the request; `null` for a batch, or if it cannot be read. */
  readonly id: string | number | null;
}

const withoutMessage: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS']);

/** Reports whether a request of this method has a message; with a method that is not POST, a body is refused. */
export function carriesMessage(method: string | undefined): boolean {
  return !withoutMessage.has(method);
}

/** Operation of a method, the member of `params` that names it, and whether `Mcp-Name` repeats the name. */
const methods: ReadonlyMap<unknown, readonly [kind: OperationKind, member: 'name' | 'uri', isInHeader: boolean]> =
  new Map([
    ['tools/call', ['tools', 'name', true]],
    ['prompts/get', ['prompts', 'name', true]],
    ['resources/read', ['resources', 'uri', true]],
    ['resources/subscribe', ['resources', 'uri', false]],
    ['resources/unsubscribe', ['resources', 'uri', false]],
  ]);
const listenMethod = 'subscriptions/listen';
const completeMethod = 'completion/complete';

/** Operations of a message; none for methods that require only the policy. */
export function readOperations({ method, params }: JsonObject): readonly Operation[] {
  if (method === listenMethod) return readSubscriptions(params);
  if (method === completeMethod) return readReference(params);
  const [kind, member] = methods.get(method) ?? [];
  return kind === undefined || member === undefined ? [] : [{ kind, name: readMember(params, member) }];
}

/** Operations that the headers of a request name, for a gate that does not see the body. */
export function readHeaderOperations(method: string, name: string | null): readonly Operation[] {
  const [kind, , isInHeader] = methods.get(method) ?? [];
  if (kind !== undefined) return [{ kind, name: isInHeader ? (name ?? undefined) : undefined }];
  // Their names and URIs are in the body only.
  return method === listenMethod || method === completeMethod ? [{ kind: 'resources', name: undefined }] : [];
}

/** Member of `params` that `Mcp-Name` repeats; `undefined` if the header is not compared. */
export function findNamedMember(method: unknown): 'name' | 'uri' | undefined {
  const [, member, isInHeader] = methods.get(method) ?? [];
  return isInHeader ? member : undefined;
}

export function readMember(params: unknown, member: string): string | undefined {
  const value = isJsonObject(params) && Object.hasOwn(params, member) ? params[member] : undefined;
  return typeof value === 'string' ? value : undefined;
}

function readSubscriptions(params: unknown): readonly Operation[] {
  const notifications = isJsonObject(params) ? params['notifications'] : undefined;
  const uris = isJsonObject(notifications) ? notifications['resourceSubscriptions'] : undefined;
  if (uris === undefined) return [];
  const list: readonly unknown[] = Array.isArray(uris) ? uris : [undefined];
  return list.map((uri) => ({ kind: 'resources', name: typeof uri === 'string' ? uri : undefined }));
}

/** The prompt or the URI template that is completed; both, if both are named, whatever the type says. */
function readReference(params: unknown): readonly Operation[] {
  const ref = isJsonObject(params) ? params['ref'] : undefined;
  const [name, uri] = [readMember(ref, 'name'), readMember(ref, 'uri')];
  const found: readonly Operation[] = [
    ...(name === undefined ? [] : [{ kind: 'prompts', name } as const]),
    ...(uri === undefined ? [] : [{ kind: 'resources', name: uri, isTemplate: true } as const]),
  ];
  return found.length === 0 ? [{ kind: 'prompts', name: undefined }] : found;
}
