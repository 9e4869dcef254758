import { type TryOptions, type TryResult, tryKinds } from '../page/try-wire.ts';

/** Sends requests with tokens of the local provider. Only `dev` offers it. */
export interface Tries {
  isOffered(): boolean;
  run(options: TryOptions): Promise<TryResult>;
}

const methods: ReadonlySet<unknown> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);
const kinds: ReadonlySet<unknown> = new Set(tryKinds);
const maxText = 2000;

export function readTryOptions(json: string): TryOptions | undefined {
  const { kind, method, path, scope, permissions } = parseObject(json);
  const isPath = isText(path) && /^\/(?!\/)[\x21-\x7e]*$/.test(path) && !path.includes('\\') && !path.includes('#');
  const isScope = isText(scope) && /^[\x20-\x7e]*$/.test(scope);
  const areTexts = Array.isArray(permissions) && permissions.length <= 50 && permissions.every(isText);
  if (!kinds.has(kind) || !methods.has(method) || !isPath || !isScope || !areTexts) return undefined;
  return { kind, method, path, scope, permissions } as TryOptions; // each member has just been checked
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
