/** Runs calls, a bounded number at a time; those that wait take turns by their client. */
export interface FairCalls {
  /** `undefined` if the client has too many waiting already. Rejects with what `call` does, and `tooLate` if its turn never came. */
  run<T>(client: string, call: () => Promise<T>): Promise<T> | undefined;
  readonly running: number;
}

/** Bounds of {@link createFairCalls}. */
export interface FairCallsOptions {
  /** At a time, of all clients. */
  readonly maxCalls: number;
  /** At a time, of one client. */
  readonly maxPerClient: number;
  /** That wait, of one client. */
  readonly maxWaitingPerClient: number;
  /** That wait, of all clients. */
  readonly maxWaiting: number;
  /** Seconds that one waits for its turn. */
  readonly waitSeconds: number;
  /** What it is rejected with then. */
  readonly tooLate: () => Error;
}

interface Client {
  running: number;
  readonly waiting: Set<() => void>;
}

/**
 * Creates the calls. A client that sends a flood waits behind itself: each of the others has the next free turn before
 * it gets another one.
 */
export function createFairCalls(options: FairCallsOptions): FairCalls {
  const { maxCalls, maxPerClient, maxWaitingPerClient, maxWaiting, waitSeconds, tooLate } = options;
  /** In the order of their turns. */
  const clients = new Map<string, Client>();
  let running = 0;
  let waiting = 0;

  const find = (name: string): Client => {
    const client = clients.get(name) ?? { running: 0, waiting: new Set() };
    clients.set(name, client);
    return client;
  };

  /** Gives away a turn that has just become free. */
  const next = (): void => {
    for (const [name, client] of clients) {
      const [start] = client.waiting;
      if (start === undefined || client.running >= maxPerClient) continue;
      // To the end here as well: several of one client may be running.
      clients.delete(name);
      clients.set(name, client);
      start();
      return;
    }
  };

  const start = async <T>(name: string, client: Client, call: () => Promise<T>): Promise<T> => {
    running++;
    client.running++;
    try {
      return await call();
    } finally {
      running--;
      client.running--;
      // To the end: whoever waits besides has the turn that is free now.
      clients.delete(name);
      if (client.running > 0 || client.waiting.size > 0) clients.set(name, client);
      next();
    }
  };

  return {
    run<T>(name: string, call: () => Promise<T>) {
      const client = find(name);
      if (running < maxCalls && client.running < maxPerClient) return start(name, client, call);
      if (client.waiting.size >= maxWaitingPerClient || waiting >= maxWaiting) return undefined;
      return new Promise<T>((resolve, reject) => {
        const leave = (): void => {
          clearTimeout(timer);
          client.waiting.delete(begin);
          waiting--;
        };
        const begin = (): void => {
          leave();
          start(name, client, call).then(resolve, reject);
        };
        const timer = setTimeout(() => {
          leave();
          if (client.running === 0 && client.waiting.size === 0) clients.delete(name);
          reject(tooLate());
        }, waitSeconds * 1000);
        client.waiting.add(begin);
        waiting++;
      });
    },
    get running() {
      return running;
    },
  };
}
