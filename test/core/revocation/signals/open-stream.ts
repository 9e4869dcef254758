import { onTestFinished } from 'vitest';
import type { RevocationStore } from '../../../../src/core/revocation/record.ts';
import { createRevocations, readRevocations } from '../../../../src/core/revocation/revocations.ts';
import { openSignals, type Signals } from '../../../../src/core/revocation/signals/receiver.ts';
import type { StreamEvent } from '../../../../src/core/revocation/signals/stream.ts';
import type { StreamOptions } from '../../../../src/core/revocation/signals/stream-options.ts';
import { until } from '../../../../tools/shared/network.js';
import { startTransmitter, type TestTransmitter } from '../../../support/transmitter.ts';

export const issuer = 'https://idp.example/';
export const authorization = 'Bearer pushed-secret';
export const user = { format: 'iss_sub', iss: issuer, sub: 'ann' };
export const session = { format: 'opaque', id: 's1' };

interface Options extends Partial<StreamOptions> {
  readonly store?: RevocationStore;
  readonly path?: string;
  readonly prepare?: (transmitter: TestTransmitter) => void;
  readonly now?: () => number;
}

/** Starts a transmitter that is stopped after the test. */
export async function start(path?: string): Promise<TestTransmitter> {
  const transmitter = await startTransmitter(path);
  onTestFinished(() => transmitter.stop());
  return transmitter;
}

/** Opens one stream in this process; pushes go directly to its receiver. */
export function receive(
  transmitter: TestTransmitter,
  { store, path: _path, prepare: _prepare, now, ...options }: Options = {},
) {
  const revocations = createRevocations({ ...(store && { store }), ...(now && { now }) });
  const parts = readRevocations('test', revocations);
  const events: StreamEvent[] = [];
  const signals = openSignals(
    {
      streams: {
        idp: { transmitter: transmitter.url, issuer, audience: transmitter.stream.aud, authorization, ...options },
      },
      ca: transmitter.ca,
      onStreamEvent: (event) => events.push(event),
    },
    parts,
    now,
  );
  onTestFinished(() => void signals.close());
  const post = async (
    token: string,
    headers: Readonly<Record<string, string>> = {},
    path = '/shared-signals/idp',
    method = 'POST',
  ) => {
    const sent = new Headers({ authorization, 'content-type': 'application/secevent+jwt', ...headers });
    const readBody = async (most: number) => (Buffer.byteLength(token) > most ? 413 : token);
    const { status, body } = await signals.respond(
      { request: { method, url: path, headers: sent }, connection: undefined, readBody },
      path,
    );
    return { status, body: body === '' ? undefined : (JSON.parse(body) as unknown) };
  };
  const seconds = (): number => Math.floor(now?.() ?? Date.now() / 1000);
  const reasonOf = (claims: object = {}) =>
    parts.check({ iss: issuer, sub: 'ann', sid: 's1', iat: seconds() - 60, exp: seconds() + 60, ...claims })?.reason;
  const outcomes = () => events.flatMap((event) => (event.type === 'received' ? [event.outcome] : []));
  return { signals, revocations, parts, post, reasonOf, events, outcomes, stream: () => only(signals) };
}

const only = ({ streams: [stream] }: Signals) => {
  if (stream === undefined) throw new Error('there is no stream');
  return stream;
};

/** Opens one stream of a transmitter that is stopped after the test. */
export async function open(options: Options = {}) {
  const transmitter = await start(options.path);
  options.prepare?.(transmitter);
  const receiver = receive(transmitter, options);
  await until(() => receiver.events.some(({ type }) => type === 'opened'));
  const remote = transmitter.stream;
  const send = (type: string, subject: object, event?: object, claims?: Readonly<Record<string, unknown>>) =>
    receiver.post(transmitter.event(remote, type, subject, event, claims));
  return { ...receiver, transmitter, remote, send };
}
