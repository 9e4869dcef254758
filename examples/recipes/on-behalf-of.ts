import * as oauth from 'oauth4webapi';
import type { Access } from 'portcullis';

/** The token endpoint, and the client that exchanges tokens. */
export interface Exchange {
  readonly server: oauth.AuthorizationServer;
  readonly client: oauth.Client;
  readonly authentication: oauth.ClientAuth;
  readonly options?: oauth.TokenEndpointRequestOptions;
}

/** Exchanges the token of a call for one that another API takes, for the same user (RFC 8693). */
export async function exchangeToken(
  { token }: Pick<Access, 'token'>,
  audience: string,
  exchange: Exchange,
): Promise<string> {
  const { server, client, authentication, options } = exchange;
  const response = await oauth.genericTokenEndpointRequest(
    server,
    client,
    authentication,
    'urn:ietf:params:oauth:grant-type:token-exchange',
    { subject_token: token, subject_token_type: 'urn:ietf:params:oauth:token-type:access_token', audience },
    options,
  );
  return (await oauth.processGenericTokenEndpointResponse(server, client, response)).access_token;
}
