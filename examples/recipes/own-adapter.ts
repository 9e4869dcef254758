import { type Access, AccessError, type Policy, type ResourceRequest, type ResourceServer } from 'portcullis';

/** A request of the framework, as it hands it over. */
export interface OwnRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  /** Every line as it came: names and values in turn. */
  readonly lines: readonly (readonly [name: string, value: string])[];
}

/** A response of the framework. */
export interface OwnAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type OwnHandler = (request: OwnRequest, access: Access) => OwnAnswer | Promise<OwnAnswer>;

/** Makes the `protect` function of the framework. */
export function createProtect(server: ResourceServer) {
  return (policy: Policy, handler: OwnHandler) =>
    async (request: OwnRequest): Promise<OwnAnswer> => {
      const read = toResourceRequest(request);
      try {
        const access = await server.authorize(read, policy);
        const answer = await handler(request, access);
        // RFC 9449 §8.2: the response has the new nonce.
        if (access.dpopNonce === undefined) return answer;
        return { ...answer, headers: { ...answer.headers, 'dpop-nonce': access.dpopNonce } };
      } catch (error) {
        // The framework handles other errors.
        if (!(error instanceof AccessError)) throw error;
        const { status, headers, body } = server.describeRefusal(error, read, { policy });
        return { status, headers, body };
      }
    };
}

/** Header lines of one name are joined: a second Authorization must not vanish. */
function toResourceRequest({ method, host, path, lines }: OwnRequest): ResourceRequest {
  const headers = new Headers();
  for (const [name, value] of lines) headers.append(name, value);
  return { method, url: `https://${host}${path}`, headers };
}
