import * as v from 'valibot';
import { parseJsonObject } from '../../core/jose/json.ts';
import { isPlainHttps } from '../../core/outbound/https-address.ts';
import { type SignalName, signalNames } from '../../core/revocation/signals/signal-names.ts';
import {
  longestVerifyEvery,
  type StreamOptions,
  streamNameGrammar,
} from '../../core/revocation/signals/stream-options.ts';
import { showCode } from '../../core/shown-text.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import { readRegularFile } from '../lifecycle/file.ts';
import type { Settings } from '../settings/settings.ts';

const https = (description: string) => v.pipe(v.string(), v.regex(/^https:\/\/[^\s#@]+$/), v.description(description));
const text = (description: string) => v.pipe(v.string(), v.minLength(1), v.description(description));

const credentials = v.pipe(
  v.union([
    v.strictObject({ tokenFile: text('Path of a file with an access token for the transmitter.') }),
    v.strictObject({
      tokenEndpoint: https('https URL of the token endpoint.'),
      clientId: text('Client id of this receiver.'),
      clientSecretFile: text('Path of a file with the secret of the client.'),
      scope: v.optional(text('Scopes of the access token, separated by spaces.')),
    }),
  ]),
  v.description('Access to the transmitter: a token in a file, or client credentials.'),
);

const stream = v.pipe(
  v.strictObject({
    transmitter: https('https URL of the transmitter; its metadata has it as issuer.'),
    issuer: v.optional(text('Issuer of the access tokens that the events end. Default: the configured issuer.')),
    delivery: v.pipe(
      v.picklist(['push', 'poll']),
      v.description('push: the transmitter sends events; poll: they are fetched.'),
    ),
    endpoint: v.optional(https('Push: https URL that the transmitter calls. Default: EXTERNAL_URL and the path.')),
    authorizationFile: v.optional(
      text('Push: path of a file with the entire Authorization value that the transmitter sends.'),
    ),
    events: v.optional(
      v.pipe(
        v.array(v.picklist(signalNames as readonly [SignalName, ...SignalName[]])), // there is at least one
        v.minLength(1),
        v.description('Events that end tokens. Default: the five that end a session or an account.'),
      ),
    ),
    credentials: v.optional(credentials),
    verifyEvery: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(1),
        v.maxValue(longestVerifyEvery),
        v.description('Seconds between two verifications, 1 to 86400. Default: 300.'),
      ),
    ),
    onStale: v.optional(
      v.pipe(
        v.picklist(['accept', 'refuse']),
        v.description('Treatment of tokens of the issuer while the stream is stale. Default: accept.'),
      ),
    ),
  }),
  v.description('One stream of a transmitter.'),
);

export const signalsSchema = v.pipe(
  v.strictObject({
    $schema: v.optional(text('Address of this schema.')),
    streams: v.pipe(
      v.record(v.pipe(v.string(), v.regex(streamNameGrammar)), stream),
      v.minEntries(1),
      v.description('Streams by name: 1 to 64 of a-z, 0-9 and -. The name is the last segment of the push endpoint.'),
    ),
  }),
  v.title('Streams of Shared Signals'),
);

const maxFileBytes = 1024 * 1024;
const path = '/shared-signals/';

/** Reads the streams of the file. Throws `StartFailure` for a file that cannot be used. */
export function readSignalsFile({
  sharedSignals: file,
  issuer,
  externalUrl,
}: Settings): Readonly<Record<string, StreamOptions>> {
  const name = 'SHARED_SIGNALS';
  const fail = (problem: string): StartFailure => new StartFailure(`${name} cannot be used. ${problem}`);
  const parsed = v.safeParse(signalsSchema, parseJsonObject(readBytes(file, fail)));
  if (!parsed.success) {
    const at = v.getDotPath(parsed.issues[0]);
    throw fail(`The file is not valid${at === null ? '' : ` at ${at}`}. ${parsed.issues[0].message}`);
  }
  const read = Object.entries(parsed.output.streams).map(([key, { authorizationFile, credentials, ...options }]) => {
    const need = (member: string, fix: string): StartFailure => fail(`streams.${key}.${member} is required: ${fix}`);
    const readSecret = (secretFile: string): string => readBytes(secretFile, fail).toString('utf8').trim();
    const {
      delivery,
      issuer: own = issuer,
      endpoint = externalUrl === '' ? undefined : `${externalUrl.replace(/\/$/, '')}${path}${key}`,
    } = options;
    if (own === undefined) throw need('issuer', 'no issuer is configured');
    if (delivery === 'push' && !isPlainHttps(endpoint))
      throw need('endpoint', 'write the https URL that the transmitter calls, or set EXTERNAL_URL');
    if (delivery === 'push' && authorizationFile === undefined)
      throw need('authorizationFile', 'write the path of a file');
    const stream: StreamOptions = {
      ...(options as Pick<StreamOptions, 'transmitter' | 'delivery'>), // JSON has no undefined members
      issuer: own,
      ...(delivery === 'push' && { endpoint: String(endpoint), authorization: readSecret(String(authorizationFile)) }),
      ...(credentials !== undefined && { credentials: readCredentials(credentials, readSecret) }),
    };
    return [key, stream] as const;
  });
  return Object.fromEntries(read);
}

function readCredentials(
  written: v.InferOutput<typeof credentials>,
  readSecret: (file: string) => string,
): NonNullable<StreamOptions['credentials']> {
  if ('tokenFile' in written) return { token: () => readSecret(written.tokenFile) };
  const { clientSecretFile, ...client } = written;
  return { ...client, clientSecret: readSecret(clientSecretFile) };
}

/** The path is not shown: it may be the secret. */
function readBytes(file: string, fail: (problem: string) => StartFailure): Buffer {
  try {
    return readRegularFile(file, maxFileBytes);
  } catch (error) {
    throw fail(`A file cannot be read${showCode(error)}. Set paths of readable files of at most ${maxFileBytes} bytes`);
  }
}
