import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { attempt } from '../../core/attempt.ts';
import { withoutMark } from '../../core/jose/json.ts';
import { readProofKey } from '../../core/jose/signed-proof.ts';
import { readWellKnown } from '../../core/keys/discovery.ts';
import type { DroppedKey } from '../../core/keys/jwks.ts';
import { createKeySet } from '../../core/keys/key-set.ts';
import { omitUndefined } from '../../core/option-members.ts';
import { type AnyResponse, createOutbound, type FetchLimits, fetchDirectly } from '../../core/outbound/outbound.ts';
import { toProviderError } from '../../core/outbound/provider-error.ts';
import { UsageError } from '../commands/failure.ts';
import type { Flags } from '../commands/flags.ts';
import type { Deployment, Entry } from './deployments.ts';
import { type CheckName, type Finding, skipped, unknown } from './finding.ts';

export type DoctorContext = ReturnType<typeof createContext>;
export type Contact = Awaited<ReturnType<typeof contactProvider>>;
export type Findings = AsyncIterable<Finding>;

type Target = ReturnType<typeof readTarget>;

export function readTarget(values: Flags<'doctor'>['values']) {
  const { 'from-outside': outside, peer: peers = [] } = values;
  const urls = outside === undefined ? peers : [outside, ...peers];
  if (!urls.every((url) => /^https?:\/\//.test(url) && URL.canParse(url))) {
    throw new UsageError('--from-outside and --peer: use URLs that begin with http:// or https://.');
  }
  const timeoutSeconds = Number(values.timeout ?? 5);
  if (!(timeoutSeconds > 0 && timeoutSeconds <= 60)) throw new UsageError('--timeout: use seconds, up to 60.');
  const read = <T>(flag: 'dpop-key-file' | 'token-file' | 'client-cert', form: string, parse: (text: string) => T) => {
    const file = values[flag];
    if (file === undefined) return undefined;
    const text = attempt(() => withoutMark(readFileSync(file)).toString().trim());
    if (text === undefined) throw new UsageError(`--${flag}: the file cannot be read.`);
    const parsed = attempt(parse, text);
    if (parsed === undefined) throw new UsageError(`--${flag}: use ${form}.`);
    return parsed;
  };
  // Throws if it is not a certificate with its key.
  const readIdentity = (pem: string) => createSecureContext({ cert: pem, key: pem }) && pem;
  const readKey = (key: string) => readProofKey(key.startsWith('{') ? JSON.parse(key) : key);
  return {
    outside: outside === undefined ? undefined : new URL(outside),
    peers: peers.map((peer) => new URL(peer)),
    token: read('token-file', 'a token', String),
    proofKey: read('dpop-key-file', 'a private key for proofs, in PEM or as JWK', readKey),
    /** Client certificate and key, in PEM. */
    identity: read('client-cert', 'a certificate with its key, in PEM', readIdentity),
    timeoutSeconds,
  };
}

export function createContext(target: Target, deployment: Deployment) {
  const { identity, timeoutSeconds } = target;
  const limits: FetchLimits = { timeoutSeconds, maxBytes: 1024 * 1024 };
  const contacts = new Map<Entry, ReturnType<typeof contactProvider>>();
  return {
    ...{ ...target, deployment },
    /** Contacts a provider once for all checks. */
    contact(entry: Entry): ReturnType<typeof contactProvider> {
      const contact = contacts.get(entry) ?? contactProvider(entry, limits);
      contacts.set(entry, contact);
      return contact;
    },
    /** Sends a request to the service, without a proxy. Rejects with `ProviderError`. */
    request: (url: URL, headers: Readonly<Record<string, string>> = {}, method: 'GET' | 'OPTIONS' = 'GET') =>
      fetchDirectly(url, { method, headers }, limits, omitUndefined({ identity })),
  };
}

/** Requests what the service requests first, and fetches the keys as it does. */
async function contactProvider({ trust, issuer, jwksUri, insecure = false }: Entry, limits: FetchLimits) {
  const outbound = createOutbound({ ...trust, insecure });
  const address = jwksUri ?? `${readWellKnown(issuer, insecure)}openid-configuration`;
  const dropped: DroppedKey[] = [];
  const keys = createKeySet({
    ...{ ...trust, issuer, insecure, mode: 'once', ...(jwksUri !== undefined && { jwksUri }) },
    onEvent: (event) => void (event.type === 'dropped' && dropped.push(event)),
  });
  const sentAt = Date.now();
  const response = await outbound.fetchAny(address, {}, limits).catch(toProviderError);
  const respondedAt = Date.now();
  const error = await keys.ready().then(() => undefined, toProviderError);
  keys.close();
  outbound.close();
  return { address, response, sentAt, respondedAt, error, dropped, published: keys.fetched()?.keys ?? [] };
}

export function forEachIssuer(
  check: CheckName,
  examine: (entry: Entry, contact: Contact, context: DoctorContext) => Findings,
) {
  return async function* (context: DoctorContext): Findings {
    const { entries, absence } = context.deployment;
    if (entries.length === 0) yield skipped(check, absence);
    const all = entries.map(async (entry) => {
      const findings = await collect(check, examine(entry, await context.contact(entry), context));
      return findings.map((finding) => (entry.label === undefined ? finding : { ...finding, issuer: entry.label }));
    });
    for (const findings of await Promise.all(all)) yield* findings;
  };
}

/** Collects the findings of a check, also if it fails. */
export async function collect(check: CheckName, findings: Findings): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  try {
    for await (const finding of findings) all.push(finding);
  } catch (error) {
    all.push(unknown(check, `the check ended early (${describeError(error)}); the service may be healthy`));
  }
  return all;
}

/** Describes an error by its code, such as ECONNREFUSED. Messages may contain an address with a password. */
export function describeError(error: unknown): string {
  const { detail, kind, cause } = toProviderError(error);
  return detail ?? (cause instanceof Error ? cause.name : kind);
}

/** The redirect, link or description of a refusal in the challenge of a response. */
export const readChallenge = ({ headers }: AnyResponse, parameter: string): string | undefined =>
  new RegExp(`${parameter}="([^"]*)"`).exec(headers.get('www-authenticate') ?? '')?.[1];
