import { type EventReceiver, type EventResponse, eventResponse } from '../../http/event-post.ts';
import { type RevocationStore, RevocationsFull } from '../../revocation/record.ts';
import type { RevocationParts } from '../../revocation/revocations.ts';
import { maxSignalBytes, servesSignals, signalsRoute } from '../../signals/receiver.ts';
import { createPendingRequests, type ToPrimary, type ToWorker } from './messages.ts';
import type { PrimaryChannel } from './replay-ipc.ts';

// Milliseconds.
const requestTimeout = 5000;
const recordsPerMessage = 5000;

export function createWorkerRevocationStore(channel: PrimaryChannel): RevocationStore {
  const pending = createPendingRequests<'written' | 'full' | 'failed'>(requestTimeout);
  channel.onMessage((message) => {
    if (message.type === 'revocation_written') pending.settle(message.id, message.outcome);
  });
  return {
    async write(records) {
      const outcome = await pending.request((id) => channel.send({ type: 'revocation_write', id, records }));
      if (outcome === 'full') throw new RevocationsFull();
      // The records arrive before the response.
      if (outcome !== 'written') throw new Error('The primary process has not stored the cutoff');
    },
    follow(follower) {
      channel.onMessage((message) => {
        if (message.type !== 'revocations') return;
        if (message.records.length > 0) follower.apply(message.records);
        if (message.hasContact) follower.onContact();
      });
      channel.send({ type: 'revocation_follow' });
      return () => undefined;
    },
    // Streams are in the primary process.
    lease: async () => false,
  };
}

/** Creates the receiver of a worker for events of streams, which the primary process verifies. */
export function createForwardingReceiver(channel: PrimaryChannel): EventReceiver {
  const pending = createPendingRequests<EventResponse>(requestTimeout);
  channel.onMessage((message) => {
    if (message.type === 'event_response') pending.settle(message.id, message.response);
  });
  return {
    route: signalsRoute,
    serves: servesSignals,
    async respond({ request: { method, headers }, readBody }, path) {
      const sent: Record<string, string> = {};
      for (const name of ['authorization', 'content-type']) {
        const value = headers.get(name);
        if (value !== null) sent[name] = value;
      }
      const body = method === 'POST' ? await readBody(maxSignalBytes) : '';
      const response = await pending.request((id) =>
        channel.send({ type: 'event_post', id, path, method, headers: sent, ...(body !== undefined && { body }) }),
      );
      return response ?? eventResponse(503, undefined, { 'retry-after': '5' });
    },
  };
}

/** Revocations of the primary process, as workers use them. */
export interface RevocationRelay {
  receive(worker: number, message: ToPrimary, send: (message: ToWorker) => void): void;
  remove(worker: number): void;
}

export function createRevocationRelay(
  revocations: RevocationParts,
  signals: EventReceiver | undefined,
): RevocationRelay {
  const followers = new Map<number, (message: ToWorker) => void>();
  revocations.onRecords((records) => {
    for (const send of followers.values()) send({ type: 'revocations', records, hasContact: records.length === 0 });
  });

  const follow = (worker: number, send: (message: ToWorker) => void): void => {
    followers.set(worker, send);
    const records = [...revocations.records()];
    for (let at = 0; at < records.length; at += recordsPerMessage) {
      send({ type: 'revocations', records: records.slice(at, at + recordsPerMessage), hasContact: false });
    }
    send({ type: 'revocations', records: [], hasContact: revocations.isLoaded() });
  };

  const write = async (
    message: ToPrimary & { readonly type: 'revocation_write' },
  ): Promise<'written' | 'full' | 'failed'> => {
    try {
      await revocations.write(message.records);
      return 'written';
    } catch (error) {
      return error instanceof RevocationsFull ? 'full' : 'failed';
    }
  };

  return {
    receive(worker, message, send) {
      if (message.type === 'revocation_follow') follow(worker, send);
      if (message.type === 'revocation_write') {
        void write(message).then((outcome) => send({ type: 'revocation_written', id: message.id, outcome }));
      }
      if (message.type === 'event_post') {
        const { id, path, method, headers, body } = message;
        const request = { method, url: path, headers: { get: (name: string) => headers[name] ?? null } };
        void signals
          ?.respond({ request, connection: undefined, readBody: async () => body }, path)
          .then((response) => send({ type: 'event_response', id, response }));
      }
    },
    remove: (worker) => void followers.delete(worker),
  };
}
