import { isJsonObject, type JsonObject } from '../../jose/json.ts';
import { createHttpClient } from '../../outbound/http-client.ts';
import { type ProviderError, toProviderError } from '../../outbound/provider-error.ts';
import { type EgressProxy, findProxy } from './egress.ts';

/** What fetching one document of the provider has shown. */
export type Visit =
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** `undefined` if the body is no JSON object. */
      readonly document: JsonObject | undefined;
      /** Seconds that the clock of the provider is ahead of ours; `undefined` if it does not tell its time. */
      readonly lead: number | undefined;
      /** Seconds by which `lead` may be wrong. */
      readonly uncertainty: number;
      readonly milliseconds: number;
      readonly proxy: EgressProxy | undefined;
    }
  | { readonly kind: 'failed'; readonly error: ProviderError; readonly proxy: EgressProxy | undefined };

/** How documents of the provider are fetched. */
export interface VisitOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** PEM of a certificate that is trusted as well. */
  readonly ca?: string | undefined;
  /** Milliseconds for everything. */
  readonly timeout: number;
}

const maxBytes = 256 * 1024;

/** Fetches a document as the service does: the same client, proxy and certificates. Never rejects. */
export async function visitProvider(url: string, { environment, ca, timeout }: VisitOptions): Promise<Visit> {
  const proxy = findProxy(new URL(url), environment);
  const client = createHttpClient({ environment, ...(ca !== undefined && { ca }) });
  const startedAt = Date.now();
  try {
    const response = await client.fetch(url, {
      method: 'GET',
      headers: { accept: 'application/json' },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeout),
    });
    const answeredAt = Date.now();
    const date = Date.parse(response.headers.get('date') ?? '');
    const document = await readDocument(response.body as AsyncIterable<Uint8Array> | null); // on Node it always is one
    return {
      kind: 'answer',
      status: response.status,
      document,
      // Date has whole seconds: the middle of its second is compared with the middle of the call.
      lead: Number.isNaN(date) ? undefined : (date + 500 - (startedAt + answeredAt) / 2) / 1000,
      uncertainty: 0.5 + (answeredAt - startedAt) / 2000,
      milliseconds: answeredAt - startedAt,
      proxy,
    };
  } catch (error) {
    return { kind: 'failed', error: toProviderError(error), proxy };
  } finally {
    client.close();
  }
}

async function readDocument(body: AsyncIterable<Uint8Array> | null): Promise<JsonObject | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxBytes) return undefined;
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
