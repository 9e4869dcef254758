import { type EventReceiver, eventResponse } from '../../http/event-post.ts';
import { type RevocationStore, RevocationsFull } from '../../revocation/record.ts';
import { maxSignalBytes, servesSignals, signalsRoute } from '../../signals/receiver.ts';
import type { OwnedRevocations } from '../revocation/open-revocations.ts';
import type { PrimaryChannel, PrimaryFunctions, WorkerChannel } from './channel.ts';

// Milliseconds.
const requestTimeout = 5000;
const recordsPerMessage = 5000;

export function createWorkerRevocationStore(channel: PrimaryChannel): RevocationStore {
  return {
    async write(records) {
      const outcome = await channel.request('writeRevocations', requestTimeout, records);
      if (outcome === 'full') throw new RevocationsFull();
      // The records arrive before the response.
      if (outcome !== 'written') throw new Error('The primary process has not stored the cutoff');
    },
    follow(follower) {
      channel.provide({
        revocations({ records, hasContact }) {
          if (records.length > 0) follower.apply(records);
          if (hasContact) follower.onContact();
        },
      });
      channel.call('followRevocations');
      return () => undefined;
    },
    // Streams are in the primary process.
    lease: async () => false,
  };
}

/** Creates the receiver of a worker for events of streams, which the primary process verifies. */
export function createForwardingReceiver(channel: PrimaryChannel): EventReceiver {
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
      const response = await channel.request('postEvent', requestTimeout, { path, method, headers: sent, body });
      return response ?? eventResponse(503, undefined, { 'retry-after': '5' });
    },
  };
}

/** Provides the revocations of the primary process to its workers. */
export function createRevocationRelay({
  parts,
  signals,
}: OwnedRevocations): (channel: WorkerChannel) => Partial<PrimaryFunctions> {
  const followers = new Set<WorkerChannel>();
  parts.onRecords((records) => {
    for (const follower of followers) follower.call('revocations', { records, hasContact: records.length === 0 });
  });
  return (channel) => ({
    followRevocations() {
      followers.add(channel);
      channel.onClose(() => followers.delete(channel));
      const records = [...parts.records()];
      for (let at = 0; at < records.length; at += recordsPerMessage) {
        channel.call('revocations', { records: records.slice(at, at + recordsPerMessage), hasContact: false });
      }
      channel.call('revocations', { records: [], hasContact: parts.isLoaded() });
    },
    async writeRevocations(records) {
      try {
        await parts.write(records);
        return 'written';
      } catch (error) {
        return error instanceof RevocationsFull ? 'full' : 'failed';
      }
    },
    ...(signals !== undefined && {
      postEvent({ path, method, headers, body }) {
        const request = { method, url: path, headers: { get: (name: string) => headers[name] ?? null } };
        return signals.respond({ request, connection: undefined, readBody: async () => body }, path);
      },
    }),
  });
}
