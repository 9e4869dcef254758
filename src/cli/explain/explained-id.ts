import { readdirSync, readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findCacheFolder } from '../../dev/provider/cache-folder.ts';
import { consoleKeyPrefix } from '../../dev/provider/defaults.ts';
import type { Explanation } from '../../explain/explanation.ts';
import { failures } from '../../failures.ts';
import type { DecisionDetail } from '../../server/console/wire.ts';
import { isReason } from './reason-page.ts';

/** Which call is explained, and where the console is that knows it. */
export interface NamedCall {
  readonly id: string;
  /** URL of the admin listener. */
  readonly admin: string;
}

const idForm = /^[\w.:-]{1,128}$/;
const keyForm = /^[\w-]{20,64}$/;
/** Milliseconds for one answer. */
const timeout = 5000;

/** Asks the console of a running service for a call that was just answered. Throws `TypeError` for what it cannot have. */
export async function explainById(call: NamedCall, environment: NodeJS.ProcessEnv): Promise<Explanation> {
  const { id, admin } = call;
  if (!idForm.test(id)) throw new TypeError('id: write the id of a call, as X-Request-Id of its answer has it');
  const url = readAdmin(admin);
  const keys = findKeys(environment);
  if (keys.length === 0) {
    throw new TypeError('admin: there is no key. Set CONSOLE_KEY_FILE to the file that the service writes it to');
  }
  const detail = await ask(new URL(`/console/api/decisions/${id}`, url), keys);
  if (detail === undefined) {
    throw new TypeError('id: the console does not know this call. It keeps the last 200 that were refused');
  }
  if (detail.decision.id !== id) {
    // Stdout has the explanation only, also as JSON.
    process.stderr.write(
      'portcullis: found by the X-Request-Id that the caller chose, which another request can have too. ' +
        `The service's own id is ${detail.decision.id}.\n`,
    );
  }
  // The service writes the whole of an explanation.
  return (detail.explanation as Explanation | undefined) ?? explainByFacts(detail);
}

/** The key must not leave this machine. */
function readAdmin(admin: string): URL {
  const url = URL.canParse(admin) ? new URL(admin) : undefined;
  if (url?.protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)) return url;
  throw new TypeError('admin: write the URL of the admin listener on this machine, as in http://127.0.0.1:9464');
}

/** The key of the service, or else those that `dev` has left for its own. */
function findKeys(environment: NodeJS.ProcessEnv): readonly string[] {
  const named = environment['PORTCULLIS_CONSOLE_KEY_FILE'] || environment['CONSOLE_KEY_FILE'];
  const files = named === undefined || named === '' ? findDevFiles(environment) : [named];
  return files.flatMap((file) => {
    try {
      const key = readFileSync(file, 'utf8').trim();
      return keyForm.test(key) ? [key] : [];
    } catch {
      return [];
    }
  });
}

function findDevFiles(environment: NodeJS.ProcessEnv): readonly string[] {
  try {
    const folder = findCacheFolder(environment);
    return readdirSync(folder)
      .filter((name) => name.startsWith(consoleKeyPrefix))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** `undefined` if the call is not known. */
async function ask(url: URL, keys: readonly string[]): Promise<DecisionDetail | undefined> {
  for (const key of keys) {
    const { status, body } = await get(url, key);
    if (status === 200) return JSON.parse(body) as DecisionDetail; // the service writes this shape
    if (status === 404 && /among the last/.test(body)) return undefined;
    if (status === 404) throw new TypeError('admin: there is no console. Start the service with CONSOLE=on');
    if (status !== 401) throw new TypeError(`admin: the console answers ${status}`);
  }
  throw new TypeError('admin: the console refuses the key. CONSOLE_KEY_FILE must name the file of this service');
}

async function get(url: URL, key: string): Promise<{ readonly status: number; readonly body: string }> {
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}` };
      request(url, { headers, agent: false, signal: AbortSignal.timeout(timeout) }, resolve)
        .on('error', reject)
        .end();
    });
    return { status: response.statusCode ?? 0, body: await text(response) };
  } catch {
    throw new TypeError('admin: nobody answers there. Name the admin listener of a service that runs');
  }
}

/** A call whose checks were not walked: its reason, and what the log says of it. */
function explainByFacts({ decision, facts }: DecisionDetail): Explanation {
  const { reason, status, at } = decision;
  const fact = (name: string): string | undefined => facts.find(([each]) => each === name)?.[1];
  const [expected, received] = [fact('expected'), fact('received')];
  if (reason === undefined || !isReason(reason)) {
    throw new TypeError('id: the call was answered without a look at a token, so there are no checks');
  }
  return {
    ...{ version: 1, verdict: 'refused', reason, status, at },
    against: { issuer: [], audiences: [], keys: 'none' },
    checks: [
      {
        ...{ id: 'log', group: 'log line', verdict: 'fail', reason },
        ...(expected !== undefined && { expected }),
        ...(received !== undefined && { seen: received }),
        fix: failures[reason].fix,
        docs: `refusals.md#${reason}`,
      },
    ],
  };
}
