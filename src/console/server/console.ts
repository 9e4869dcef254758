import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ConsoleState } from '../../server/console/wire.ts';
import { type Answer, createAnswer, sendAnswer } from '../../server/http/answer.ts';
import { type ConsoleRefusal, isPrefetch, refuseForeignPage, refuseOutsiders } from './admission.ts';
import { awaitDecision } from './awaited-decision.ts';
import type { ConsoleKey } from './console-key.ts';
import { createEventStreams } from './event-stream.ts';
import { consoleHeaders, readPageFiles } from './files/page-files.ts';
import { enteredHtml } from './files/page-html.ts';
import type { Hub } from './hub.ts';
import { createSessions } from './sessions.ts';
import { readTryOrder, type Tries } from './tries.ts';

/** What the console shows, and who opens it. */
export interface ConsoleOptions {
  readonly hub: Hub;
  readonly key: ConsoleKey;
  readonly state: () => Promise<ConsoleState>;
  readonly tries: Tries;
}

/** Bytes of what a page sends. */
const maxBody = 8192;
const decisionPrefix = '/console/api/decisions/';

const refusals = {
  key: {
    status: 401,
    text: 'The console opens with its key, and each key works once. Open the newest link: dev prints it, and CONSOLE_KEY_FILE names the file with the key.',
  },
} as const satisfies Readonly<Record<string, ConsoleRefusal>>;

/** Answers under `/console`: on this machine only, and only whoever has come in with the key. */
export function createConsole({ hub, key, state, tries }: ConsoleOptions): RequestListener {
  const sessions = createSessions();
  const streams = createEventStreams(hub);
  let files: ReadonlyMap<string, Answer> | undefined;

  const enter = async (incoming: IncomingMessage, sent: string): Promise<Answer> => {
    if (incoming.method !== 'GET' || isPrefetch(incoming) || !key.take(sent)) return refuse(refusals.key);
    // Whoever is in finds the next key in the file.
    await key.settled();
    const headers = [...consoleHeaders, 'content-type', 'text/html; charset=utf-8'];
    return createAnswer(200, [...headers, 'set-cookie', sessions.open(incoming.socket.localPort)], enteredHtml);
  };

  /** `explain --admin` reads the key from its file each time: it has nowhere to keep a cookie. */
  const hasKey = ({ headers }: IncomingMessage): boolean => {
    const [, sent] = /^Bearer ([\w-]{20,64})$/.exec(headers.authorization ?? '') ?? [];
    return sent !== undefined && key.matches(sent);
  };

  const read = async (path: string, outgoing: ServerResponse): Promise<Answer | undefined> => {
    if (path === '/console/api/events') {
      return streams.open(outgoing, consoleHeaders) ? undefined : text(503, 'Too many pages watch already. Close one.');
    }
    if (path === '/console/api/state') return json(200, await state());
    if (path.startsWith(decisionPrefix)) {
      const detail = await awaitDecision(hub, path.slice(decisionPrefix.length));
      return detail === undefined ? text(404, 'That decision is not among the last ones any more.') : json(200, detail);
    }
    files ??= readPageFiles();
    return files.get(path) ?? text(404, 'There is no such page in the console.');
  };

  const write = async (path: string, incoming: IncomingMessage): Promise<Answer> => {
    if (path !== '/console/api/try') return text(404, 'There is no such page in the console.');
    if (!/^application\/json\s*(?:;|$)/i.test(incoming.headers['content-type'] ?? '')) return text(415, 'Send JSON.');
    const body = await readBody(incoming);
    if (body === undefined) return text(413, 'That is too long.');
    if (!tries.isOffered()) return text(404, 'Calls can be tried in portcullis dev only.');
    const order = readTryOrder(body);
    if (order === undefined) return text(400, 'Choose a token, a method, and a path that begins with /.');
    return json(200, await tries.run(order));
  };

  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<Answer | undefined> => {
    const outside = refuseOutsiders(incoming) ?? refuseForeignPage(incoming);
    if (outside !== undefined) return refuse(outside);
    const { method, url = '' } = incoming;
    const [path = '', query] = url.split('?', 2);
    const sent = path === '/console' ? new URLSearchParams(query).get('key') : null;
    if (sent !== null) return enter(incoming, sent);
    const isIn = sessions.has(incoming.headers.cookie, incoming.socket.localPort);
    if (!isIn && !(path.startsWith(decisionPrefix) && method === 'GET' && hasKey(incoming)))
      return refuse(refusals.key);
    if (method === 'GET' || (method === 'HEAD' && path !== '/console/api/events')) return read(path, outgoing);
    if (method === 'POST') return write(path, incoming);
    return createAnswer(405, [...consoleHeaders, 'allow', 'GET, HEAD, POST'], '');
  };

  return (incoming, outgoing) => {
    answer(incoming, outgoing).then(
      (ready) => ready !== undefined && sendAnswer(ready, outgoing),
      () => sendAnswer(text(500, 'That has failed. Try it again.'), outgoing),
    );
  };
}

function refuse({ status, text: reason }: ConsoleRefusal): Answer {
  return text(status, reason);
}

function text(status: number, reason: string): Answer {
  return createAnswer(status, [...consoleHeaders, 'content-type', 'text/plain; charset=utf-8'], `${reason}\n`);
}

function json(status: number, value: unknown): Answer {
  return createAnswer(status, [...consoleHeaders, 'content-type', 'application/json'], JSON.stringify(value));
}

/** The body as text; `undefined` if it is too long. */
async function readBody(incoming: IncomingMessage): Promise<string | undefined> {
  let body = '';
  let isTooLong = false;
  for await (const chunk of incoming.setEncoding('utf8')) {
    isTooLong ||= body.length + String(chunk).length > maxBody;
    // What is too long is read to its end, so that the answer is read too.
    if (!isTooLong) body += String(chunk);
  }
  return isTooLong ? undefined : body;
}
