import type { Connection, ResourceRequest } from './request.ts';

/** Request that brings an event, for any way of reading it. */
export interface EventPost {
  readonly request: ResourceRequest;
  readonly connection: Connection | undefined;
  /** Name of the sender, if the application knows one. Default: the address of the connection. */
  readonly peer?: string | undefined;
  /** Reads the body; the status of the response if it has more bytes, or does not arrive in time. */
  readonly readBody: (maxBytes: number) => Promise<string | 413 | 408>;
}

export interface EventResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface EventReceiver {
  readonly route: string;
  readonly serves: (path: string) => boolean;
  /** Responds to a request for such a path. Never rejects. */
  readonly respond: (post: EventPost, path: string) => Promise<EventResponse>;
}

/** Creates a response that no cache stores. */
export function eventResponse(
  status: number,
  value?: Readonly<Record<string, string>>,
  headers?: Readonly<Record<string, string>>,
): EventResponse {
  return {
    status,
    headers: { 'cache-control': 'no-store', ...(value && { 'content-type': 'application/json' }), ...headers },
    body: value === undefined ? '' : JSON.stringify(value),
  };
}

export const onlyPost: EventResponse = eventResponse(405, undefined, { allow: 'POST' });

export function isMediaType(contentType: string | null, type: string): boolean {
  return contentType?.split(';')[0]?.trim().toLowerCase() === type;
}
