import { createHmac } from 'node:crypto';
import type { JsonObject } from '../../jose/json.ts';

/** Whose call it was, as a log line may tell it. */
export interface Identity {
  readonly sub?: string;
  readonly client_id?: string;
}

/** What may be told of the owner of a token. */
export type IdentityMode = 'off' | 'plain' | 'hashed';

/** Tells whose call it was; `undefined` if nothing may be told. */
export type DescribeIdentity = (claims: JsonObject) => Identity | undefined;

/** Characters of a hash: enough to tell a million owners apart. */
const hashLength = 22;

/**
 * Creates the text for logs. A hash is made under a secret of the deployment, so that lines of one owner can be found
 * without the log naming the owner.
 */
export function createDescribeIdentity(mode: IdentityMode, secret: string): DescribeIdentity {
  if (mode === 'off') return () => undefined;
  const tell =
    mode === 'plain'
      ? (text: string) => text
      : (text: string) => createHmac('sha256', secret).update(text).digest('base64url').slice(0, hashLength);
  return ({ sub, client_id: clientId, azp }) => {
    const client = typeof clientId === 'string' ? clientId : azp;
    return {
      ...(typeof sub === 'string' && { sub: tell(sub) }),
      ...(typeof client === 'string' && { client_id: tell(client) }),
    };
  };
}
