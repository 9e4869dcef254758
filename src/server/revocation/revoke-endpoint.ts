import type { IncomingMessage, RequestListener } from 'node:http';
import { readNodeBytes } from '../../adapters/node-request.ts';
import { isMediaType } from '../../core/http/event-post.ts';
import { isSameSecret } from '../../core/http/same-secret.ts';
import { isTime, type JsonObject, parseJsonObject } from '../../core/jose/json.ts';
import { type Cutoff, readCutoff } from '../../core/revocation/revocations.ts';
import { showCode } from '../../core/shown-text.ts';
import { discardRest } from '../http/exchange.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import { readRegularFile } from '../lifecycle/file.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';
import type { OwnedRevocations } from './open-revocations.ts';

type Issuers = () => readonly { readonly issuer: string }[];

const maxBodyBytes = 16 * 1024;
const maxKeyBytes = 4096;
const members: ReadonlySet<string> = new Set(['sub', 'sid', 'client_id', 'jti', 'issuer', 'before']);

/** Opens `POST /revocations`; `undefined` without a key. Throws `StartFailure` if the key cannot be read. */
export function openRevokeEndpoint(
  { settings, reloads, log }: ProcessContext,
  owned: OwnedRevocations | undefined,
  issuers: Issuers,
): RequestListener | undefined {
  const { adminKeyFile: file, clockTolerance } = settings;
  if (file === '' || owned === undefined) return undefined;
  const { revocations } = owned;
  let key = readAdminKey(file);
  reloads.add(() => {
    key = readAdminKey(file);
    log.write('info', 'admin_key_reloaded');
  });

  const respond = async (incoming: IncomingMessage): Promise<number> => {
    if (incoming.method !== 'POST') return 405;
    if (!isKey(incoming.headers.authorization, key)) return 401;
    if (!isMediaType(incoming.headers['content-type'] ?? null, 'application/json')) return 400;
    const body = await readNodeBytes(incoming, maxBodyBytes);
    const cutoff = body === undefined ? undefined : parseCutoff(body, clockTolerance.exp, issuers);
    if (cutoff === undefined) return 400;
    try {
      await revocations.revoke(cutoff);
      return 204;
    } catch {
      return 503;
    }
  };

  return (incoming, outgoing) => {
    const send = (status: number): void => {
      const challenge = status === 401 ? { 'www-authenticate': 'Bearer' } : status === 405 ? { allow: 'POST' } : {};
      outgoing.writeHead(status, { 'cache-control': 'no-store', ...challenge }).end();
      discardRest(incoming);
    };
    respond(incoming).then(send, () => send(400));
  };
}

/** `undefined` for a body that is not a cutoff of a configured issuer. A time later than now plus the tolerance is a mistake. */
function parseCutoff(body: Buffer, tolerance: number, readIssuers: Issuers): Cutoff | undefined {
  const value: JsonObject | undefined = parseJsonObject(body);
  if (value === undefined || !Object.keys(value).every((name) => members.has(name))) return undefined;
  const issuers = new Set(readIssuers().map(({ issuer }) => issuer));
  const { before, issuer = issuers.size === 1 ? [...issuers][0] : undefined } = value;
  if (!issuers.has(issuer as string)) return undefined; // any value
  if (before !== undefined && (!isTime(before) || before > Date.now() / 1000 + tolerance)) return undefined;
  const cutoff = { ...value, issuer } as Cutoff; // checked by the next line
  try {
    readCutoff(cutoff);
    return cutoff;
  } catch {
    return undefined;
  }
}

function isKey(authorization: string | undefined, key: string): boolean {
  const [, sent = ''] = /^bearer +(.*)$/is.exec(authorization ?? '') ?? [];
  return isSameSecret(sent, key);
}

/** Reads the key of the admin endpoint. Throws `StartFailure`. */
export function readAdminKey(file: string): string {
  const fail = (problem: string, cause?: unknown): StartFailure => new StartFailure(`ADMIN_KEY_FILE ${problem}`, cause);
  let key = '';
  try {
    key = readRegularFile(file, maxKeyBytes).toString('utf8').trim();
  } catch (cause) {
    throw fail(`cannot be read${showCode(cause)}. Set the path of a readable file`, cause);
  }
  if (key === '') throw fail('is empty. Write at least 32 random bytes into it');
  return key;
}
