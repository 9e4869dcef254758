import { type TryOrder, type TryResult, tryKinds } from '../page/try-wire.ts';

/** Tries calls with tokens of the local provider; only whoever runs that provider can. */
export interface Tries {
  isOffered(): boolean;
  /** Rejects if nobody answers. */
  run(order: TryOrder): Promise<TryResult>;
}

const methods: ReadonlySet<unknown> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);
const kinds: ReadonlySet<unknown> = new Set(tryKinds);
const maxText = 2000;

/** Reads the order of a page; `undefined` for anything that is none. */
export function readTryOrder(json: string): TryOrder | undefined {
  const { kind, method, path, scope, permissions } = parseObject(json);
  const isPath = isText(path) && /^\/(?!\/)[\x21-\x7e]*$/.test(path) && !path.includes('\\') && !path.includes('#');
  const isScope = isText(scope) && /^[\x20-\x7e]*$/.test(scope);
  const areTexts = Array.isArray(permissions) && permissions.length <= 50 && permissions.every(isText);
  if (!kinds.has(kind) || !methods.has(method) || !isPath || !isScope || !areTexts) return undefined;
  return { kind, method, path, scope, permissions } as TryOrder; // each member has just been checked
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxText;
}

function parseObject(json: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(json));
  } catch {
    return {};
  }
}
