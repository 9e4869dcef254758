import { createHmac } from 'node:crypto';
import type { JsonObject } from '../../../core/jose/json.ts';
import { type Actor, readActor } from '../../../core/token/grants.ts';

export interface Identity {
  readonly sub?: string;
  readonly client_id?: string;
  readonly actor?: Actor;
}

export type IdentityMode = 'off' | 'plain' | 'hashed';

/** Describes the client; `undefined` if the mode is `off`. */
export type DescribeIdentity = (claims: JsonObject) => Identity | undefined;

/** Characters of a hash: enough for a million different subjects. */
const hashLength = 22;

/** Creates the description. A hash under a secret of the deployment finds the lines of one subject without its name. */
export function createDescribeIdentity(mode: IdentityMode, secret: string): DescribeIdentity {
  if (mode === 'off') return () => undefined;
  const write =
    mode === 'plain'
      ? (text: string) => text
      : (text: string) => createHmac('sha256', secret).update(text).digest('base64url').slice(0, hashLength);
  const describe = ({ sub, client_id: clientId, azp }: JsonObject): Omit<Identity, 'actor'> => {
    const client = typeof clientId === 'string' ? clientId : azp;
    return {
      ...(typeof sub === 'string' && { sub: write(sub) }),
      ...(typeof client === 'string' && { client_id: write(client) }),
    };
  };
  return (claims) => {
    const actor = readActor(claims);
    if (actor === undefined) return describe(claims);
    const { sub, client_id, iss } = actor;
    return { ...describe(claims), actor: { ...describe({ sub, client_id }), ...(iss !== undefined && { iss }) } };
  };
}
