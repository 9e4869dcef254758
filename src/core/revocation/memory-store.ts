import type { RevocationFollower, RevocationRecord, RevocationStore } from './record.ts';

/** Creates a store in the memory of this process. A restart loses it. */
export function createMemoryRevocationStore(): RevocationStore {
  const followers = new Set<RevocationFollower>();
  return {
    async write(records: readonly RevocationRecord[]) {
      for (const follower of followers) follower.apply(records);
    },
    follow(follower) {
      // A later follower gets what the others know.
      for (const other of followers) follower.apply([...other.records()]);
      followers.add(follower);
      follower.onContact();
    },
    unfollow: (follower) => void followers.delete(follower),
  };
}
