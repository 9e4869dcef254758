/** Requests to another process. */
export interface PendingRequests<Response> {
  /** Resolves with the response to its id, or with `undefined` after the limit (milliseconds). */
  request(limit: number, send: (id: number) => void): Promise<Response | undefined>;
  settle(id: number, response: Response | undefined): void;
  /** Settles all requests without a response. */
  close(): void;
}

export function createPendingRequests<Response>(): PendingRequests<Response> {
  const pending = new Map<number, (response: Response | undefined) => void>();
  let nextId = 0;
  const settle = (id: number, response: Response | undefined): void => pending.get(id)?.(response);
  return {
    settle,
    request: (limit, send) =>
      new Promise((resolve) => {
        const id = nextId++;
        const timer = setTimeout(settle, limit, id, undefined).unref();
        pending.set(id, (response) => {
          clearTimeout(timer);
          pending.delete(id);
          resolve(response);
        });
        send(id);
      }),
    close() {
      for (const id of pending.keys()) settle(id, undefined);
    },
  };
}
