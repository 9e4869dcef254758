import type { DecisionDetail } from '../../server/console/wire.ts';
import type { Hub } from './hub.ts';

/** Time until the decision about a completed request arrives with its checks, in milliseconds. */
const patience = 1500;

/** Returns one decision. Waits for the checks of a request that has just completed. */
export function awaitDecision(hub: Hub, id: string): Promise<DecisionDetail | undefined> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      end();
      resolve(hub.find(id));
    };
    const timer = setTimeout(finish, patience);
    const end = hub.subscribe(() => isComplete(hub.find(id)) && finish());
    if (isComplete(hub.find(id))) finish();
  });
}

function isComplete(detail: DecisionDetail | undefined): boolean {
  return detail !== undefined && (detail.walked || Date.now() - Date.parse(detail.decision.at) > patience);
}
