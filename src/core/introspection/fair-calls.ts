export type FairCallsOptions = ReturnType<typeof limitCalls>;

/** Calls that wait, for each call at a time; and number of such clients. */
const waitingPerCall = 4;
const waitingClients = 8;

/** Limits of the calls to one endpoint. Half is left for all others, however many calls one client makes. */
export function limitCalls(maxCalls: number, waitSeconds: number) {
  const maxWaitingPerClient = maxCalls * waitingPerCall;
  const maxPerClient = Math.ceil(maxCalls / 2);
  return { maxCalls, maxPerClient, maxWaitingPerClient, maxWaiting: maxWaitingPerClient * waitingClients, waitSeconds };
}

interface Client {
  running: number;
  readonly waiting: Set<{ readonly begin: () => void; readonly giveUp: () => void }>;
}

/** Creates the calls. A flood of one client waits behind itself. If too many wait, the client with the most gives up a place. */
export function createFairCalls(options: FairCallsOptions) {
  const { maxCalls, maxPerClient, maxWaitingPerClient, maxWaiting, waitSeconds } = options;
  const clients = new Map<string, Client>();
  let running = 0;
  let waiting = 0;

  /** Clients without calls are not kept: a flood may use any number of names. */
  const forgetIdle = (name: string, { running, waiting }: Client): void => {
    if (running === 0 && waiting.size === 0) clients.delete(name);
  };

  /** Reports whether one more call of this client may wait. */
  const makeRoom = (client: Client): boolean => {
    if (client.waiting.size >= maxWaitingPerClient) return false;
    if (waiting < maxWaiting) return true;
    let most = client;
    for (const each of clients.values()) if (each.waiting.size > most.waiting.size) most = each;
    if (most.waiting.size <= client.waiting.size + 1) return false;
    // Its oldest: that one would be too late first.
    const [oldest] = most.waiting;
    oldest?.giveUp();
    return true;
  };

  /** Gives away a turn that has just become free. */
  const next = (): void => {
    for (const [name, client] of clients) {
      const [first] = client.waiting;
      if (first === undefined || client.running >= maxPerClient) continue;
      // To the end here as well: several of one client may be running.
      clients.delete(name);
      clients.set(name, client);
      first.begin();
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
      // Moved to the end: another waiting client has the next turn.
      clients.delete(name);
      if (client.running > 0 || client.waiting.size > 0) clients.set(name, client);
      next();
    }
  };

  return {
    run<T>(name: string, call: () => Promise<T>, tooLate: () => T) {
      const client: Client = clients.get(name) ?? { running: 0, waiting: new Set() };
      clients.set(name, client);
      if (running < maxCalls && client.running < maxPerClient) return start(name, client, call);
      if (!makeRoom(client)) {
        forgetIdle(name, client);
        return undefined;
      }
      return new Promise<T>((resolve, reject) => {
        const leave = (): void => {
          clearTimeout(timer);
          client.waiting.delete(own);
          waiting--;
        };
        const own = {
          begin: () => {
            leave();
            start(name, client, call).then(resolve, reject);
          },
          giveUp: () => {
            leave();
            forgetIdle(name, client);
            resolve(tooLate());
          },
        };
        const timer = setTimeout(own.giveUp, waitSeconds * 1000);
        client.waiting.add(own);
        waiting++;
      });
    },
    running: (): number => running,
    clients: (): number => clients.size,
  };
}
