import { formatBasic } from '../../introspection/client-authentication.ts';
import { isJsonObject, type JsonObject } from '../../jose/json.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';
import type { FetchLimits, JsonRequest, JsonResponse, Outbound } from '../../outbound/outbound.ts';
import { ProviderError } from '../../outbound/provider-error.ts';
import { signalTypes } from './signal-names.ts';
import type { Stream } from './stream-options.ts';

export interface TransmitterMetadata {
  readonly jwksUri: string;
  readonly configurationEndpoint: string;
  readonly statusEndpoint: string | undefined;
  readonly verificationEndpoint: string | undefined;
  /** True if the transmitter sends nothing before subjects were added to the stream. */
  readonly needsSubjects: boolean;
}

export interface RemoteStream {
  readonly id: string;
  readonly audiences: ReadonlySet<string>;
  /** Poll: address that events are fetched from. */
  readonly pollEndpoint: string | undefined;
  /** Smallest number of seconds between two verifications. */
  readonly minVerifySeconds: number;
}

/** Calls to the transmitter of one stream. All reject with `ProviderError`. */
export interface Transmitter {
  readMetadata(): Promise<TransmitterMetadata>;
  /** Finds the stream; creates or updates it if `mayChange`. `undefined` if it does not exist. */
  openStream(metadata: TransmitterMetadata, mayChange: boolean): Promise<RemoteStream | undefined>;
  readPaused(metadata: TransmitterMetadata, id: string): Promise<boolean | undefined>;
  verify(metadata: TransmitterMetadata, id: string, state: string): Promise<void>;
  /** Fetches events and acknowledges earlier ones. */
  poll(endpoint: string, request: JsonObject): Promise<JsonObject>;
}

const wellKnown = '/.well-known/ssf-configuration';
const methods = { push: 'urn:ietf:rfc:8935', poll: 'urn:ietf:rfc:8936' } as const;
const limits = { timeoutSeconds: 5, maxBytes: 256 * 1024 } as const;
/** A long poll lasts until there are events, or until the transmitter ends it. */
const pollLimits = { timeoutSeconds: 60, maxBytes: 8 * 1024 * 1024 } as const;
/** Seconds before its end after which a token is not used. */
const tokenMargin = 30;

/** Creates the calls for a stream. `now` returns seconds. */
export function createTransmitter(stream: Stream, outbound: Outbound, now: () => number): Transmitter {
  const authorization = createAuthorization(stream, outbound, now);

  const send = async (url: string, request: JsonRequest, within: FetchLimits = limits): Promise<JsonResponse> => {
    const response = await outbound.sendJson(url, { ...request, authorization: await authorization.read() }, within);
    // The next attempt has a new token.
    if (response.status === 401) authorization.discard();
    return response;
  };

  const sendOk = async (url: string, request: JsonRequest, within?: FetchLimits): Promise<unknown> =>
    requireOk(await send(url, request, within));

  const list = async (endpoint: string): Promise<readonly JsonObject[]> => {
    const response = await send(endpoint, { method: 'GET' });
    if (response.status === 404) return [];
    if (response.status !== 200) throw failure(response);
    return (Array.isArray(response.value) ? response.value : [response.value]).filter(isJsonObject);
  };

  const method = methods[stream.delivery];
  const wanted = {
    delivery: {
      method,
      ...(stream.delivery === 'push' && { endpoint_url: stream.endpoint, authorization_header: stream.authorization }),
    },
    events_requested: stream.events.map((name) => signalTypes[name]),
    description: `portcullis ${stream.name}`,
  };

  /** Ours among the streams of this receiver: it has our endpoint, or our description. */
  const isOurs = ({ delivery, description }: JsonObject): boolean => {
    const found = Object(delivery) as JsonObject;
    if (found['method'] !== method) return false;
    return stream.delivery === 'push'
      ? found['endpoint_url'] === stream.endpoint
      : (description ?? wanted.description) === wanted.description;
  };

  const differs = ({ events_requested: events }: JsonObject): boolean =>
    JSON.stringify(Array.isArray(events) ? events.toSorted() : []) !==
    JSON.stringify(wanted.events_requested.toSorted());

  const read = (value: JsonObject): RemoteStream => readStream(value, stream.transmitter);

  const update = async (endpoint: string, found: JsonObject): Promise<JsonObject> => {
    const value = { stream_id: found['stream_id'], ...wanted };
    const updated = await sendOk(endpoint, { method: 'PATCH', value });
    return isJsonObject(updated) ? { ...found, ...updated } : found;
  };

  return {
    async readMetadata() {
      const { value } = await outbound.fetchJson(metadataUrl(stream.transmitter), limits);
      const { issuer, jwks_uri: jwksUri, configuration_endpoint: configuration, default_subjects: subjects } = value;
      if (issuer !== stream.transmitter) throw new ProviderError('foreign_issuer');
      if (!isPlainHttps(jwksUri)) throw new ProviderError('bad_jwks_uri');
      const [status, verification] = [value['status_endpoint'], value['verification_endpoint']];
      for (const each of [configuration, status ?? configuration, verification ?? configuration]) {
        if (!isPlainHttps(each)) throw new ProviderError('bad_transmitter');
      }
      return {
        jwksUri,
        configurationEndpoint: String(configuration),
        statusEndpoint: status === undefined ? undefined : String(status),
        verificationEndpoint: verification === undefined ? undefined : String(verification),
        needsSubjects: subjects === 'NONE',
      };
    },
    async openStream({ configurationEndpoint: endpoint }, mayChange) {
      const known = await list(endpoint);
      const ours = known.find(isOurs);
      if (ours !== undefined) return read(mayChange && differs(ours) ? await update(endpoint, ours) : ours);
      if (!mayChange) return undefined;
      const created = await send(endpoint, { method: 'POST', value: wanted });
      if (created.status !== 409) {
        const value = requireOk(created);
        if (!isJsonObject(value)) throw failure(created);
        return read(value);
      }
      // The transmitter allows one stream, and has one that differs.
      const [existing] = await list(endpoint);
      if (existing === undefined) throw failure(created);
      return read(await update(endpoint, existing));
    },
    async readPaused({ statusEndpoint }, id) {
      if (statusEndpoint === undefined) return undefined;
      const value = await sendOk(withStream(statusEndpoint, id), { method: 'GET' });
      return isJsonObject(value) && typeof value['status'] === 'string' ? value['status'] !== 'enabled' : undefined;
    },
    async verify({ verificationEndpoint }, id, state) {
      if (verificationEndpoint === undefined) return;
      await sendOk(verificationEndpoint, { method: 'POST', value: { stream_id: id, state } });
    },
    async poll(endpoint, request) {
      const value = await sendOk(endpoint, { method: 'POST', value: request }, pollLimits);
      const { sets } = Object(value) as JsonObject;
      return isJsonObject(sets) ? sets : {};
    },
  };
}

/** Inserts the well-known path between host and path (RFC 8615). */
export function metadataUrl(transmitter: string): string {
  const { origin, pathname } = new URL(transmitter);
  return `${origin}${wellKnown}${pathname.replace(/\/$/, '')}`;
}

function withStream(endpoint: string, id: string): string {
  const url = new URL(endpoint);
  url.searchParams.set('stream_id', id);
  return url.href;
}

/** Reads the description of a stream. Its `iss` must be the transmitter (SSF 1.0 §8.1.1.1). */
function readStream(value: JsonObject, transmitter: string): RemoteStream {
  const { stream_id: id, iss, aud, delivery, min_verification_interval: least } = value;
  if (iss !== transmitter) throw new ProviderError('foreign_issuer');
  const audiences = (Array.isArray(aud) ? aud : [aud]).filter((each): each is string => typeof each === 'string');
  if (typeof id !== 'string' || audiences.length === 0) throw new ProviderError('not_a_stream');
  const { endpoint_url: endpoint } = Object(delivery) as JsonObject;
  return {
    id,
    audiences: new Set(audiences),
    pollEndpoint: isPlainHttps(endpoint) ? endpoint : undefined,
    minVerifySeconds: typeof least === 'number' && least > 0 ? least : 0,
  };
}

function requireOk(response: JsonResponse): unknown {
  if (response.status < 200 || response.status > 299) throw failure(response);
  return response.value;
}

function failure({ status }: JsonResponse): ProviderError {
  return new ProviderError('status', { detail: String(status) });
}

/** Creates the value of Authorization for calls to the transmitter: `undefined` without credentials. */
function createAuthorization({ credentials }: Stream, outbound: Outbound, now: () => number) {
  let known: { readonly value: string; readonly until: number } | undefined;
  return {
    async read(): Promise<string | undefined> {
      if (credentials === undefined) return undefined;
      if ('token' in credentials) {
        const { token } = credentials;
        return `Bearer ${typeof token === 'string' ? token : token()}`;
      }
      if (known !== undefined && now() < known.until) return known.value;
      const { tokenEndpoint, clientId, clientSecret, scope } = credentials;
      const fields = { grant_type: 'client_credentials', ...(scope !== undefined && { scope }) };
      const form = {
        body: new URLSearchParams(fields).toString(),
        authorization: formatBasic(clientId, clientSecret),
      };
      const { value } = await outbound.postForm(tokenEndpoint, form, limits);
      const { access_token: token, expires_in: seconds } = value;
      if (typeof token !== 'string' || token === '') throw new ProviderError('not_a_token');
      const lifetime = typeof seconds === 'number' ? Math.max(0, seconds - tokenMargin) : 0;
      known = { value: `Bearer ${token}`, until: now() + lifetime };
      return known.value;
    },
    discard(): void {
      known = undefined;
    },
  };
}
