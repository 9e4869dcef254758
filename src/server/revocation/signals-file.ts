import * as v from 'valibot';
import { parseJsonObject } from '../../core/jose/json.ts';
import { omitUndefined } from '../../core/option-members.ts';
import {
  findRemovedMember,
  longestVerifyEvery,
  readStreams,
  type SignalName,
  type StreamOptions,
  signalNames,
  streamNameGrammar,
} from '../../core/revocation/signals/stream-options.ts';
import { messageOf, showCode, showText } from '../../core/shown-text.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import { readRegularFile } from '../lifecycle/file.ts';
import type { Settings } from '../settings/settings.ts';

const https = (description: string) => v.pipe(v.string(), v.regex(/^https:\/\/[^\s#@]+$/), v.description(description));
const text = (description: string) => v.pipe(v.string(), v.minLength(1), v.description(description));

const stream = v.pipe(
  v.strictObject({
    transmitter: https('https URL of the transmitter; its metadata has it as issuer.'),
    issuer: v.optional(text('Issuer of the access tokens that the events end. Default: the configured issuer.')),
    audience: text('Audience of the stream: aud of its security event tokens.'),
    authorizationFile: text('Path of a file with the entire Authorization value that the transmitter sends.'),
    events: v.optional(
      v.pipe(
        v.array(v.picklist(signalNames as readonly [SignalName, ...SignalName[]])), // there is at least one
        v.minLength(1),
        v.description('Events that end tokens. Default: the five that end a session or an account.'),
      ),
    ),
    verifyEvery: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(1),
        v.maxValue(longestVerifyEvery),
        v.description(
          'Seconds between two verification events of the transmitter, 1 to 86400. Default: none are expected.',
        ),
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
      v.description('Streams by name: 1 to 64 of a-z, 0-9 and -. The name is the last segment of the endpoint.'),
    ),
  }),
  v.title('Streams of Shared Signals'),
);

const maxFileBytes = 1024 * 1024;

/** Reads the streams of the file. Throws `StartFailure` for a file that cannot be used. */
export function readSignalsFile({ sharedSignals, issuer }: Settings): Readonly<Record<string, StreamOptions>> {
  const fail = (problem: string): StartFailure => new StartFailure(`SHARED_SIGNALS cannot be used. ${problem}`);
  const value = parseJsonObject(readBytes(sharedSignals, fail));
  for (const [name, each] of Object.entries(Object(value?.['streams']))) {
    const removed = findRemovedMember(each);
    if (removed !== undefined) throw fail(`streams.${showText(name, 64)}: ${removed}`);
  }
  const parsed = v.safeParse(signalsSchema, value);
  if (!parsed.success) {
    const at = v.getDotPath(parsed.issues[0]);
    throw fail(`The file is not valid${at === null ? '' : ` at ${at}`}. ${parsed.issues[0].message}`);
  }
  // valibot drops such a name without an issue.
  const lost = Object.keys(Object(value?.['streams'])).find((name) => !Object.hasOwn(parsed.output.streams, name));
  if (lost !== undefined) throw fail(`streams.${lost}: write another name`);
  const read = Object.entries(parsed.output.streams).map(([key, { authorizationFile, ...written }]) => {
    const own = written.issuer ?? issuer;
    if (own === undefined) throw fail(`streams.${key}.issuer is required: no issuer is configured`);
    const authorization = readBytes(authorizationFile, fail).toString('utf8').trim();
    return [key, { ...omitUndefined(written), issuer: own, authorization }] as const;
  });
  const streams = Object.fromEntries(read);
  try {
    readStreams(streams);
  } catch (error) {
    throw fail(messageOf(error));
  }
  return streams;
}

/** The path is not shown: it may be the secret. */
function readBytes(file: string, fail: (problem: string) => StartFailure): Buffer {
  try {
    return readRegularFile(file, maxFileBytes);
  } catch (error) {
    throw fail(`A file cannot be read${showCode(error)}. Set paths of readable files of at most ${maxFileBytes} bytes`);
  }
}
