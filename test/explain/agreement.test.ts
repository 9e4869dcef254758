import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccessError, type Reason } from '../../src/core/failures.ts';
import type { ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { explain } from '../../src/explain/explain.ts';
import { readCall } from '../../src/explain/input/explained-call.ts';
import type { CallInput } from '../../src/explain/input/input.ts';
import { readInput } from '../../src/explain/input/read-input.ts';
import { openServer, serverOptions } from '../catalogue/judge-case.ts';
import { hostileKeys } from '../catalogue/key-sets.ts';
import type { ServiceName } from '../catalogue/row.ts';
import { catalogue } from '../catalogue/rows.ts';
import { beyondDefaultKeys } from '../catalogue/signatures-beyond-default.ts';
import { openWorld, type World } from '../catalogue/world.ts';
import { reasonsOutsideDryRun } from '../support/reasons-without-check.ts';

/** `AGREEMENT=all` evaluates each request in every form with every mutation; the default is one mutation of each form. */
const isComplete = process.env['AGREEMENT'] === 'all';
const policy = { scopes: ['read:messages'] };

let world: World;
const servers = new Map<ServiceName, ResourceServer>();
beforeAll(async () => {
  world = await openWorld({ published: [...hostileKeys, ...beyondDefaultKeys], services: [] });
  for (const name of Object.keys(serverOptions) as ServiceName[]) servers.set(name, await openServer(name, world));
}, 60_000);
afterAll(async () => {
  for (const server of servers.values()) server.close();
  await world.close();
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
  'header lines in another order': {
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

/** The decision of the service about the request. */
async function decide(server: ResourceServer, sent: Sent, hasTarget: boolean): Promise<Result> {
  const headers = new Map<string, string>();
  for (const [name, value] of sent.lines) {
    const before = headers.get(name.toLowerCase());
    headers.set(name.toLowerCase(), before === undefined ? value : `${before}, ${value}`);
  }
  const get = (name: string): string | null => headers.get(name.toLowerCase()) ?? null;
  const target = hasTarget ? sent.path : undefined;
  const request = { method: sent.method, url: urlOf(sent), ...(target !== undefined && { target }), headers: { get } };
  const judged = await server.judge(request, policy, { remoteAddress: '127.0.0.1', encrypted: false });
  const reason: Reason | undefined = judged instanceof AccessError ? judged.reason : undefined;
  return { verdict: reason === undefined ? 'admitted' : 'refused', reason };
}

async function explainText(server: ResourceServer, text: string, { method, path }: Sent): Promise<Result> {
  const input = readInput(text);
  if (!('headers' in input)) return { verdict: input.kind, reason: 'problem' in input ? input.problem : undefined };
  const call: CallInput = input;
  // Header lines have no method and no URL: --method and --url complete them.
  const { host } = new URL(world.url);
  const flags = call.url === undefined ? { method, url: `http://${host}${path}` } : {};
  const { request } = readCall(call, flags);
  const connection = { remoteAddress: '127.0.0.1', encrypted: false };
  const { verdict, reason } = await explain(server, request, policy, connection, { kind: call.kind });
  return { verdict, reason };
}

describe('explain and a service: every row of the catalogue, in every form, with the mutations of copying', () => {
  let compared = 0;
  const differences: string[] = [];

  it.each(Object.entries(catalogue))('%s', { timeout: 120_000 }, async (part, cases) => {
    const names = Object.keys(mutations);
    for (const [row, each] of cases.entries()) {
      const sent = readSent(each.make(world));
      const server = servers.get(each.service);
      if (sent === undefined || server === undefined) continue;
      for (const [index, [formName, form]] of Object.entries(forms).entries()) {
        if (!fits(form, sent, formName)) continue;
        const chosen = isComplete ? names : [names[(row + index) % names.length] ?? 'none'];
        for (const name of chosen) {
          const decided = await decide(server, sent, true);
          // Only the store of the service knows used proofs.
          if (decided.reason !== undefined && reasonsOutsideDryRun.includes(decided.reason as Reason)) continue;
          const explained = await explainText(server, mutations[name]?.(form.write(sent)) ?? '', sent);
          compared++;
          if (explained.verdict === decided.verdict && explained.reason === decided.reason) continue;
          differences.push(
            `${part}, ${each.attack}, ${each.name}; ${formName}, ${name}: ${JSON.stringify([decided, explained])}`,
          );
        }
      }
    }
  });

  it('at least 2,000 requests, no difference', () => {
    process.stdout.write(
      `explain: ${compared} requests, ${differences.length} decided otherwise than by the service\n`,
    );
    expect(differences).toEqual([]);
    expect(compared).toBeGreaterThanOrEqual(2000);
  });
});
