import type { ReadMessage } from '../core/mcp/operations.ts';
import type { PlainPolicy } from '../core/policy/policy.ts';
import type { RuleMcp } from './match/rules.ts';

export type McpCall = ReturnType<typeof openCall>;

/** Opens a request whose message is read once, when the policy needs it. */
export function openCall(
  { policies }: RuleMcp,
  readMessage: () => Promise<ReadMessage>,
  onRead: (message: ReadMessage) => void,
) {
  let message: ReadMessage | undefined;
  const read = async (): Promise<ReadMessage> => {
    message ??= await readMessage();
    onRead(message);
    return message;
  };
  return {
    policy: policies.requestPolicy(async () => (await read()).operations) as PlainPolicy, // no entry of a rule has a schema
    /** `undefined` until it is read. */
    get message(): ReadMessage | undefined {
      return message;
    },
    read,
  };
}
