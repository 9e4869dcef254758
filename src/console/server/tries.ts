import { type TryOptions, type TryResult, tryKinds, tryMethods } from '../page/try-wire.ts';
import { createPendingRequests } from './pending-requests.ts';

/** Sends requests with tokens of the local provider. Only `dev` offers it. */
export interface Tries {
  isOffered(): boolean;
  run(options: TryOptions): Promise<TryResult>;
}

export type FromDev =
  | { readonly type: 'tries_offered' }
  | { readonly type: 'tried'; readonly id: number; readonly result: TryResult };

export interface ToDev {
  readonly type: 'try';
  readonly id: number;
  readonly options: TryOptions;
}

/** Limit of a try, in milliseconds. A try is up to three requests. */
const timeout = 15_000;
const maxPending = 4;
const maxText = 2000;
const methods: ReadonlySet<unknown> = new Set(tryMethods);
const kinds: ReadonlySet<unknown> = new Set(Object.keys(tryKinds));

/** Opens the tries that the parent process offers. */
export function openTries(): Tries {
  const pending = createPendingRequests<TryResult>();
  let count = 0;
  let isOffered = false;
  process.on('message', (message: FromDev) => {
    if (message.type === 'tries_offered') isOffered = true;
    if (message.type === 'tried') pending.settle(message.id, message.result);
  });
  return {
    isOffered: () => isOffered && process.connected,
    async run(options) {
      if (count >= maxPending) return { problem: 'Too many tries are in flight. Wait until they complete.' };
      count++;
      const result = await pending.request(timeout, (id) => {
        const message: ToDev = { type: 'try', id, options };
        process.send?.(message, undefined, {}, (error) => error !== null && pending.settle(id, undefined));
      });
      count--;
      return result ?? { problem: 'The local identity provider does not respond. See the terminal of portcullis dev.' };
    },
  };
}

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
