import { once } from 'node:events';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import { createContext, runInContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleScript } from '../../site/explainer/bundle.js';
import { requireValid } from '../../src/cli/commands/failure.ts';
import { type Explainer, openSettings } from '../../src/cli/explain/explainer.ts';
import type { Reason } from '../../src/core/failures.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { readCall } from '../../src/explain/input/explained-call.ts';
import { readInput } from '../../src/explain/input/read-input.ts';
import type { PastedRequest, PasteResult } from '../../src/server/console/wire.ts';
import { labelSettings } from '../../src/server/settings/setting-names.ts';
import { readSettings } from '../../src/server/settings/settings.ts';
import { hostileKeys } from '../catalogue/key-sets.ts';
import type { ServiceName } from '../catalogue/row.ts';
import { catalogue } from '../catalogue/rows.ts';
import { beyondDefaultKeys } from '../catalogue/signatures-beyond-default.ts';
import { environments, openWorld, type World } from '../catalogue/world.ts';
import { enterConsole, type KeyFolder, makeKeyFolder } from '../support/console-client.ts';
import { send } from '../support/http-client.ts';
import { reasonsOutsideDryRun } from '../support/reasons-without-check.ts';
import { findVariant, readEnvironment } from '../support/variant-service.ts';

/** Each row is evaluated in one form with one mutation; with `half`, in every other form; with `all`, in every form with every mutation. */
const size = process.env['AGREEMENT'];
const isComplete = size === 'all';
/** Every so many forms of a row. */
const step = isComplete ? 1 : size === 'half' ? 2 : 6;
const names = Object.keys(environments) as ServiceName[]; // the keys of the table
const rowsAtOnce = 64;

let world: World;
let folder: KeyFolder;
let cookie: string;
let page: Page;
const explainers = new Map<ServiceName, Explainer>();
beforeAll(async () => {
  folder = await makeKeyFolder();
  const published = [...hostileKeys, ...beyondDefaultKeys];
  world = await openWorld({ published, services: names, settings: folder.environment });
  cookie = await enterConsole(world.service().adminUrl ?? '', await folder.readKey());
  page = await openPage();
  for (const name of names) {
    const environment = { ...readEnvironment(findVariant('a'), world.provider), ...environments[name] };
    const read = requireValid(readSettings({ args: [], environment }));
    const keys = { environment, jwksFile: undefined, ca: world.provider.ca, network: 'online' } as const;
    explainers.set(name, await openSettings(read.settings, keys, labelSettings(read.settings, read.effective)));
  }
});
afterAll(async () => {
  for (const explainer of explainers.values()) explainer.close();
  await Promise.all([world.close(), folder.close()]);
});

type Lines = readonly (readonly [name: string, value: string])[];

interface Sent {
  readonly method: string;
  readonly path: string;
  /** `Host` first. Values as a server reads them: without white space around them. */
  readonly lines: Lines;
}

const urlOf = ({ path, lines }: Sent): string => `http://${lines[0]?.[1]}${path}`;
const write = (lines: Lines): readonly string[] => lines.map(([name, value]) => `${name}: ${value}`);
const quote = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;

interface Form {
  readonly write: (sent: Sent) => string;
  /** True if the form has headers that only a request at the server has, such as Host and X-Forwarded-For. */
  readonly isRaw?: true;
}

/** A form without a URL: `explain` has flags for it, the console has not. */
const linesOnly = 'header lines in another order';

/** Forms in which a request is pasted. */
const forms: Readonly<Record<string, Form>> = {
  'raw request': {
    write: ({ method, path, lines }) => [`${method} ${path} HTTP/1.1`, ...write(lines), '', ''].join('\n'),
    isRaw: true,
  },
  'curl -v': {
    write: ({ method, path, lines }) =>
      ['* Connected', ...[`${method} ${path} HTTP/1.1`, ...write(lines), ''].map((line) => `> ${line}`)].join('\n'),
    isRaw: true,
  },
  curl: {
    write: (sent) =>
      `curl -X ${sent.method} --path-as-is ${quote(urlOf(sent))} ${write(sent.lines.slice(1))
        .map((line) => `-H ${quote(line)}`)
        .join(' ')}`,
  },
  HAR: {
    write: (sent) => {
      const headers = sent.lines.map(([name, value]) => ({ name, value }));
      const request = { method: sent.method, url: urlOf(sent), headers };
      return JSON.stringify({ log: { entries: [{ request, response: { status: 401 } }] } });
    },
  },
  [linesOnly]: {
    write: (sent) => [`Accept: */*`, ...write(sent.lines).toReversed(), 'X-Test: 1'].join('\n'),
  },
  'JSON of a client': {
    write: (sent) =>
      JSON.stringify({ method: sent.method, url: urlOf(sent), headers: Object.fromEntries(sent.lines.slice(1)) }),
  },
};

/** Changes that copying makes to a pasted request. */
const mutations: Readonly<Record<string, (text: string) => string>> = {
  none: (text) => text,
  'line ends of Windows': (text) => text.replaceAll('\n', '\r\n'),
  'byte order mark': (text) => `\ufeff${text}`,
  'empty lines around it': (text) => `\n\n${text}\n\n`,
  'spaces around it': (text) => `  ${text}  `,
};

/** The request of a row; `undefined` for bytes that are not HTTP, and for values that cannot be pasted. */
function readSent(sent: ReturnType<(typeof catalogue)[string][number]['make']>): Sent | undefined {
  if (typeof sent === 'string') return readSent({ headers: ['Authorization', `Bearer ${sent}`] });
  if ('raw' in sent) return undefined;
  const { path = '/api/private', method = 'GET', headers } = sent;
  const { host } = new URL(world.url);
  const lines = headers.flatMap((name, at): Lines => {
    const value = String(headers[at + 1] ?? '').replace(/^[ \t]+|[ \t]+$/g, '');
    return at % 2 === 0 ? [[String(name), value]] : [];
  });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the rows have them
  if (lines.some(([, value]) => /[\x00-\x08\x0a-\x1f\x7f\u0080-\uffff]/.test(value))) return undefined;
  const own = lines.filter(([name]) => /^host$/i.test(name));
  const others = lines.filter(([name]) => !/^host$/i.test(name));
  return { method, path, lines: [own[0] ?? ['Host', host], ...others] };
}

const onlyAtServer = /^(?:x-forwarded-|client-cert|forwarded$)/i;

/** True if every client that writes this form sends the request so. */
function fits({ isRaw }: Form, { lines }: Sent, name: string): boolean {
  const names = lines.map(([each]) => each.toLowerCase());
  if (isRaw) return true;
  const isUsual = !names.some((each) => onlyAtServer.test(each)) && lines[0]?.[1] === new URL(world.url).host;
  // An object has each name once, and a form of one request has no empty credentials.
  const isObject = name === 'JSON of a client' || name === 'curl';
  return isUsual && !(isObject && (new Set(names).size < names.length || lines.some(([, value]) => value === '')));
}

interface Result {
  readonly verdict: string;
  readonly reason: string | undefined;
}

/** The decision of the running service about the request. */
async function decide(name: ServiceName, { method, path, lines }: Sent): Promise<Result> {
  const service = world.service(name);
  const { status, headers } = await send(service.url, path, { method, headers: lines.flat() });
  const id = headers.get('x-request-id');
  if (status < 400 || id === undefined) return { verdict: status < 400 ? 'admitted' : 'refused', reason: undefined };
  const line = await service.findLog((each) => each['id'] === id);
  return { verdict: 'refused', reason: line['reason'] as string | undefined }; // the service writes a string
}

async function explainText(explainer: Explainer, text: string, sent: Sent): Promise<Result> {
  const input = readInput(text);
  if (!('headers' in input)) return { verdict: input.kind, reason: 'problem' in input ? input.problem : undefined };
  // Header lines have no method and no URL: --method and --url complete them.
  const received = readCall(input, input.url === undefined ? { method: sent.method, url: urlOf(sent) } : {});
  const connection = { ...received.connection, remoteAddress: '127.0.0.1' };
  const options = { kind: input.kind, at: Date.now() / 1000 };
  const { verdict, reason } = await explainer.explain({ ...received, connection, policy: undefined, options });
  return { verdict, reason };
}

async function paste(text: string): Promise<Result> {
  const adminUrl = world.service().adminUrl ?? '';
  const headers = ['Cookie', cookie, 'Origin', adminUrl, 'Sec-Fetch-Site', 'same-origin', 'Content-Type', 'text/plain'];
  const { json } = await send(adminUrl, '/console/api/paste', { method: 'POST', headers, body: text });
  const result = json as PasteResult; // the service writes this shape
  const { explanation, problem } = ('requests' in result ? result.requests[0] : result) as PastedRequest; // or a problem
  return { verdict: explanation?.verdict ?? 'problem', reason: explanation?.reason ?? problem };
}

interface Page {
  explainText(text: string, fields: object): Promise<readonly Explanation[]>;
  readonly fields: Readonly<Record<string, string>>;
}

/** The bundle of the site's page, in a realm without globals of Node, and the fields of its form. */
async function openPage(): Promise<Page> {
  const { issuer, audience, jwksUri, ca } = world.provider;
  const [response] = await once(get(jwksUri, { ca, family: 4 }), 'response');
  const keys = await text(response);
  const web = { crypto, structuredClone, TextEncoder, TextDecoder, URL, URLSearchParams };
  const explainer = runInContext(`${await bundleScript('explained-text.js')}; explainer`, createContext(web));
  return { ...explainer, fields: { issuer, audience, keys, algorithms: '', scopes: '', url: '', at: '' } };
}

/** Paths whose requests need a token, and the scope that they need: the page has no table of endpoints. */
const guarded: Readonly<Record<string, string>> = { '/api/private': '', '/api/private-scoped': 'read:messages' };

async function explainOnPage(pasted: string, sent: Sent, scopes: string): Promise<Result> {
  const url = pasted.includes(sent.path) ? '' : urlOf(sent);
  const [first] = await page.explainText(pasted, { ...page.fields, scopes, url });
  return { verdict: first?.verdict ?? 'none', reason: first?.reason };
}

describe('explain and a running service: every row of the catalogue, in every form, with the mutations of copying', () => {
  const compared = { explain: 0, console: 0, page: 0 };
  const differences: string[] = [];

  /** Sends a row in every form, and compares each decision with the explanations of what was sent. */
  async function compareRow(part: string, row: number, each: (typeof catalogue)[string][number]): Promise<void> {
    const changes = Object.keys(mutations);
    const explainer = explainers.get(each.service);
    for (const [index, [formName, form]] of Object.entries(forms).entries()) {
      if ((row + index) % step !== 0) continue;
      // Anew for each form: a proof is used once.
      const sent = readSent(each.make(world));
      if (explainer === undefined || sent === undefined || !fits(form, sent, formName)) continue;
      const decided = await decide(each.service, sent);
      // Only the store of the service knows used proofs.
      if (decided.reason !== undefined && reasonsOutsideDryRun.includes(decided.reason as Reason)) continue;
      const compare = (by: keyof typeof compared, change: string, result: Result): void => {
        compared[by]++;
        if (result.verdict === decided.verdict && result.reason === decided.reason) return;
        const name = `${by}: ${part}, ${each.attack}, ${each.name}; ${formName}, ${change}`;
        differences.push(`${name}: ${JSON.stringify([decided, result])}`);
      };
      for (const change of isComplete ? changes : [changes[(row + index) % changes.length] ?? 'none']) {
        const text = mutations[change]?.(form.write(sent)) ?? '';
        compare('explain', change, await explainText(explainer, text, sent));
        if (each.service === 'default' && formName !== linesOnly) compare('console', change, await paste(text));
        const scopes = guarded[sent.path];
        // A refusal without a reason, such as 405, is before any token is read.
        const isOfToken = decided.verdict === 'admitted' || decided.reason !== undefined;
        if (each.service === 'default' && scopes !== undefined && isOfToken)
          compare('page', change, await explainOnPage(text, sent, scopes));
      }
    }
  }

  it.each(Object.entries(catalogue))('%s', { timeout: 240_000 }, async (part, cases) => {
    // Many at once: most of the time is spent on waiting for log lines.
    const rows = [...cases.entries()];
    while (rows.length > 0) {
      await Promise.all(rows.splice(0, rowsAtOnce).map(([row, each]) => compareRow(part, row, each)));
    }
  });

  it('some hundred requests, with half of the forms at least 2,000; no difference', () => {
    const sums = `explain: ${compared.explain}, console: ${compared.console}, page of the site: ${compared.page}`;
    process.stdout.write(`requests to running services, ${sums}; ${differences.length} differences\n`);
    expect(differences).toEqual([]);
    const [explained, pasted] = step === 6 ? [700, 500] : [2000, 1500];
    expect(compared.explain).toBeGreaterThanOrEqual(explained);
    expect(compared.console).toBeGreaterThanOrEqual(pasted);
    expect(compared.page).toBeGreaterThanOrEqual(pasted);
  });
});
