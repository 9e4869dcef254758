import { readdirSync, readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findCacheFolder } from '../../dev/provider/cache-folder.ts';
import { consoleKeyPrefix } from '../../dev/provider/defaults.ts';
import { findLocalProvider } from '../../dev/provider/running.ts';
import type { Explanation } from '../../explain/explanation.ts';
import { failures } from '../../failures.ts';
import type { DecisionDetail } from '../../server/console/wire.ts';
import { readSettings, unused } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';
import { isReason } from './reason-page.ts';

export interface NamedCall {
  readonly id: string;
  readonly admin: string;
}

const audienceNames: ReadonlySet<string> = new Set(Object.values(variants).map(({ names }) => names.audience));
const idForm = /^[\w.:-]{1,128}$/;
const keyForm = /^[\w-]{20,64}$/;
/** Milliseconds for one response. */
const timeout = 5000;

export interface AnyCall extends Pick<NamedCall, 'id'> {
  readonly admin: string | undefined;
  /** File with the key of the console. Default: the file of the settings, or of the running dev. */
  readonly keyFile: string | undefined;
  /** Flags of settings. */
  readonly settings: readonly string[];
}

async function findAdmin({ keyFile, settings: args }: AnyCall, environment: NodeJS.ProcessEnv): Promise<string> {
  if (keyFile !== undefined) {
    const read = readSettings({ args, environment, defaults: unused });
    if (read.kind === 'settings') return `http://127.0.0.1:${read.settings.adminPort}`;
    throw new TypeError('admin: the settings are not valid, so the port is unknown. Add --admin URL');
  }
  const local = await findLocalProvider(findCacheFolder(environment), '');
  if (local?.admin !== undefined) return local.admin;
  throw new TypeError('id: no running portcullis dev was found. Add --admin URL of a service, or --file LOG');
}

/** Queries the console of a running service for a recent request. Throws `TypeError` if it cannot be read. */
export async function explainById(call: AnyCall, environment: NodeJS.ProcessEnv): Promise<Explanation> {
  const { id, keyFile } = call;
  if (!idForm.test(id)) throw new TypeError('id: write the X-Request-Id of a response');
  const url = readAdmin(call.admin ?? (await findAdmin(call, environment)));
  const keys = findKeys(environment, keyFile);
  if (keys.length === 0) {
    throw new TypeError('admin: there is no key. Add --console-key-file with the file that the service writes it to');
  }
  const detail = await ask(new URL(`/console/api/decisions/${id}`, url), keys);
  if (detail === undefined) {
    throw new TypeError(
      'id: the console does not know this request. It stores the last 200 refusals since the start; the log has older ones: --id ID --file LOG',
    );
  }
  if (detail.decision.id !== id) {
    // Stdout has the explanation only, also as JSON.
    process.stderr.write(
      'portcullis: found by the X-Request-Id that the caller chose, which another request can have too. ' +
        `The service's own id is ${detail.decision.id}.\n`,
    );
  }
  // The service writes a complete explanation.
  const explanation = (detail.explanation as Explanation | undefined) ?? explainByFacts(detail);
  return call.admin === undefined && keyFile === undefined ? nameFlagsOfDev(explanation) : explanation;
}

/** The service of `dev` names variables. `dev` has its own flag for the audience, and reads other settings from its environment. */
function nameFlagsOfDev(explanation: Explanation): Explanation {
  const rename = (fix: string): string => {
    const [, name = '', value] = /^(\w+)=(\S*)$/.exec(fix) ?? [];
    if (value === undefined) return fix;
    return audienceNames.has(name) ? `portcullis dev --audience ${value}` : `${fix} portcullis dev`;
  };
  const checks = explanation.checks.map((check) => ({
    ...check,
    ...(check.causes && { causes: check.causes.map((cause) => ({ ...cause, fix: rename(cause.fix) })) }),
  }));
  return { ...explanation, checks };
}

/** The key must not leave this host. */
export function readAdmin(admin: string): URL {
  const url = URL.canParse(admin) ? new URL(admin) : undefined;
  if (url?.protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)) return url;
  throw new TypeError('admin: write the URL of the admin listener on this host, as in http://127.0.0.1:9464');
}

export function findKeys(environment: NodeJS.ProcessEnv, keyFile: string | undefined): readonly string[] {
  const named = keyFile ?? (environment['PORTCULLIS_CONSOLE_KEY_FILE'] || environment['CONSOLE_KEY_FILE']);
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

async function ask(url: URL, keys: readonly string[]): Promise<DecisionDetail | undefined> {
  for (const key of keys) {
    const { status, body } = await get(url, key);
    if (status === 200) return JSON.parse(body) as DecisionDetail; // the service writes this shape
    if (status === 404 && /no longer has/.test(body)) return undefined;
    if (status === 404) throw new TypeError('admin: there is no console. Start the service with CONSOLE=on');
    if (status !== 401) throw new TypeError(`admin: the console responds with ${status}`);
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
    throw new TypeError('admin: no response. Name the admin listener of a running service');
  }
}

function explainByFacts({ decision, facts }: DecisionDetail): Explanation {
  const { reason, status, at } = decision;
  const fact = (name: string): string | undefined => facts.find(([each]) => each === name)?.[1];
  const [expected, received, path, nearest] = ['expected', 'received', 'path', 'nearest'].map(fact);
  const seen = received ?? (path === undefined ? undefined : `${decision.method} ${fact('host') ?? ''}${path}`);
  if (reason === undefined || !isReason(reason)) {
    throw new TypeError('id: no token was validated for this request, so there are no checks');
  }
  return {
    ...{ version: 1, verdict: 'refused', reason, status, at },
    against: { issuer: [], audiences: [], keys: 'none' },
    checks: [
      {
        ...{ id: 'log', group: 'log line', verdict: 'fail', reason },
        ...(expected !== undefined && { expected }),
        ...(seen !== undefined && { seen }),
        ...(nearest !== undefined && { why: `nearly matched: ${nearest}` }),
        fix: failures[reason].fix,
        docs: `refusals.md#${reason}`,
      },
    ],
  };
}
