import type { CreateDecisionWatch, SendBatch } from '../../server/console/opened-console.ts';
import { createCheckWalk } from './check-walk.ts';
import { describeDecision } from './decision.ts';
import { createDecisionFlow } from './decision-flow.ts';

/** Makes decisions of answered requests while there is room for more, and sends them in batches. */
export function openDecisionWatch(send: SendBatch): CreateDecisionWatch {
  return (options) => {
    const flow = createDecisionFlow(send);
    const walkChecks = createCheckWalk({ ...options, deliver: flow.addFacts });
    return (exchange, status, milliseconds) => {
      const { reason, wouldRefuse } = exchange;
      // What is not shown is not described either.
      if (!flow.hasRoom(reason === undefined && wouldRefuse === undefined ? 'other' : 'refused')) {
        flow.drop();
        return;
      }
      flow.add(describeDecision(exchange, status, milliseconds));
      walkChecks(exchange);
    };
  };
}
