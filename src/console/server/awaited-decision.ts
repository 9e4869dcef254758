import type { DecisionDetail } from '../../server/console/wire.ts';
import type { Hub } from './hub.ts';

/** Milliseconds in which a call that was just answered is surely told of, with its checks. */
const patience = 1500;

/** One decision; of a call that was just answered it is waited for until its checks are there. */
export function awaitDecision(hub: Hub, id: string): Promise<DecisionDetail | undefined> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      end();
      resolve(hub.find(id));
    };
    const timer = setTimeout(finish, patience);
    const end = hub.subscribe(() => isWhole(hub.find(id)) && finish());
    if (isWhole(hub.find(id))) finish();
  });
}

/** Whether nothing more is heard of it. */
function isWhole(detail: DecisionDetail | undefined): boolean {
  return detail !== undefined && (detail.walked || Date.now() - Date.parse(detail.decision.at) > patience);
}
