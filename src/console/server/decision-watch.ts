import cluster from 'node:cluster';
import type { CreateDecisionWatch, SendBatch } from '../../server/console/opened-console.ts';
import { describeDecision } from './decision.ts';
import { createDecisionFlow } from './decision-flow.ts';
import { createCheckExplainer } from './explained-checks.ts';
import { offerPaste } from './pasted.ts';

export function openDecisionWatch(send: SendBatch): CreateDecisionWatch {
  return (options) => {
    if (cluster.isWorker) offerPaste(options);
    const flow = createDecisionFlow(send);
    const explainChecks = createCheckExplainer({ ...options, deliver: flow.addFacts });
    return (exchange, status, milliseconds) => {
      const { reason, wouldRefuse } = exchange;
      if (!flow.hasRoom(reason === undefined && wouldRefuse === undefined ? 'other' : 'refused')) {
        flow.drop();
        return;
      }
      flow.add(describeDecision(exchange, status, milliseconds));
      explainChecks(exchange);
    };
  };
}
