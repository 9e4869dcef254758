import { AccessError, type ResourceRequest, type ResourceServer } from 'portcullis';

/** The used part of an HTTP API event (payload format 2.0). */
export interface HttpApiEvent {
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly requestContext: { readonly domainName: string; readonly http: { readonly method: string } };
}

/** The used part of a REST API event (type REQUEST). */
export interface RestApiEvent {
  readonly httpMethod: string;
  readonly methodArn: string;
  /** With every line of a header that is repeated. */
  readonly multiValueHeaders: Readonly<Record<string, readonly string[]>>;
  readonly requestContext: { readonly domainName: string; readonly path: string };
}

const policy = { scopes: ['read:messages'] };

/** An authorizer of an HTTP API with simple responses. The gateway joins repeated headers with commas. */
export function createHttpApiAuthorizer(resourceServer: ResourceServer) {
  return async ({ headers, requestContext, rawPath, rawQueryString }: HttpApiEvent) => {
    const { domainName, http } = requestContext;
    const query = rawQueryString === '' ? '' : `?${rawQueryString}`;
    const request: ResourceRequest = {
      method: http.method,
      url: `https://${domainName}${rawPath}${query}`,
      headers: new Headers(headers),
    };
    try {
      const { claims, scopes } = await resourceServer.authorize(request, policy);
      return { isAuthorized: true, context: { sub: claims.sub, scope: [...scopes].join(' ') } };
    } catch (error) {
      if (error instanceof AccessError) return { isAuthorized: false };
      throw error;
    }
  };
}

/** An authorizer of a REST API: returns a policy for IAM, or throws the error that the gateway turns into a 401. */
export function createRestApiAuthorizer(resourceServer: ResourceServer) {
  return async ({ httpMethod, methodArn, multiValueHeaders, requestContext }: RestApiEvent) => {
    const headers = new Headers();
    for (const [name, values] of Object.entries(multiValueHeaders)) {
      for (const value of values) headers.append(name, value);
    }
    const url = `https://${requestContext.domainName}${requestContext.path}`;
    try {
      const { claims } = await resourceServer.authorize({ method: httpMethod, url, headers }, policy);
      return write('Allow', methodArn, String(claims.sub));
    } catch (error) {
      if (!(error instanceof AccessError)) throw error;
      if (error.failure.status === 401) throw new Error('Unauthorized');
      return write('Deny', methodArn, 'refused');
    }
  };
}

function write(effect: 'Allow' | 'Deny', resource: string, principalId: string) {
  const statement = { Action: 'execute-api:Invoke', Effect: effect, Resource: resource };
  return { principalId, policyDocument: { Version: '2012-10-17', Statement: [statement] } };
}
