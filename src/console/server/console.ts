import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { RunTry } from '../../server/console/opened-console.ts';
import type { ConsoleState } from '../../server/console/wire.ts';
import { type Answer, createAnswer, sendAnswer } from '../../server/http/exchange.ts';
import type { Decisions } from './decisions.ts';
import { type ConsoleKey, refuseOutsiders } from './entrance.ts';
import { createEventStreams } from './event-stream.ts';
import { consoleHeaders, enteredHtml, formatRefused, readPageFiles, refusedHeaders } from './page-files.ts';
import type { ExplainPasted } from './pasted.ts';

export interface ConsoleOptions {
  readonly decisions: Decisions;
  readonly key: ConsoleKey;
  readonly state: () => ConsoleState;
  readonly paste: ExplainPasted;
  /** Absent outside `dev`. */
  readonly runTry: RunTry | undefined;
}

const decisionPrefix = '/console/api/decisions/';
const eventsPath = '/console/api/events';
const keyText = 'The console needs its key.';

/** Handles requests under `/console`: only from this host, and only with the key or a cookie that the key signed. */
export function createConsole({ decisions, key, state, paste, runTry }: ConsoleOptions): RequestListener {
  const openStream = createEventStreams(decisions);
  /** Type and maximum number of characters of each request body. A paste may be a HAR. */
  const posts = new Map([
    ['/console/api/try', { run: runTry, type: 'application/json', limit: 8192 }],
    ['/console/api/paste', { run: paste, type: 'text/plain', limit: 1_048_576 }],
  ]);
  let files: ReadonlyMap<string, Answer> | undefined;

  const read = async (path: string, outgoing: ServerResponse, isAllowed: () => boolean) => {
    if (path === eventsPath) {
      if (openStream(outgoing, consoleHeaders, isAllowed)) return undefined;
      return text(503, 'Too many pages are open. Close one.');
    }
    if (path === '/console/api/state') return json(state());
    if (path.startsWith(decisionPrefix)) {
      const detail = await decisions.find(path.slice(decisionPrefix.length));
      return detail === undefined ? text(404, 'The service no longer has this decision.') : json(detail);
    }
    files ??= readPageFiles(runTry === undefined ? 'page' : 'dev');
    return files.get(path) ?? text(404, 'The console has no such page.');
  };

  const write = async (path: string, incoming: IncomingMessage): Promise<Answer> => {
    const post = posts.get(path);
    if (post === undefined) return text(404, 'The console has no such page.');
    const { run, type, limit } = post;
    if (run === undefined) return text(404, 'Try it is available in portcullis dev only.');
    const [sent] = (incoming.headers['content-type'] ?? '').split(';', 1);
    if (sent?.trim().toLowerCase() !== type) return text(415, 'Send JSON to try, plain text to paste.');
    const body = await readBody(incoming, limit);
    if (body === undefined) return text(413, `Send at most ${limit.toLocaleString('en')} characters.`);
    const result = await run(body);
    return result === undefined ? text(400, 'Choose a token, a method, and a path that begins with /.') : json(result);
  };

  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<Answer | undefined> => {
    const outside = refuseOutsiders(incoming);
    if (outside !== undefined) return text(outside.status, outside.text);
    const { method, url = '', headers, socket } = incoming;
    const [path = '', query] = url.split('?', 2);
    const sent = path === '/console' ? new URLSearchParams(query).get('key') : null;
    if (sent !== null) {
      return method === 'GET' && key.matches(sent)
        ? html(enteredHtml, 200, [...consoleHeaders, 'set-cookie', key.writeCookie(socket.localPort)])
        : refuseKey(incoming);
    }
    // Commands keep no cookie, and send the key with each request.
    const [, bearer = ''] = /^Bearer ([\w-]{43})$/.exec(headers.authorization ?? '') ?? [];
    const isAllowed = (): boolean => key.hasCookie(headers.cookie, socket.localPort) || key.matches(bearer);
    if (!isAllowed()) return refuseKey(incoming);
    if (method === 'GET' || (method === 'HEAD' && path !== eventsPath)) return read(path, outgoing, isAllowed);
    if (method === 'POST') return write(path, incoming);
    return createAnswer(405, [...consoleHeaders, 'allow', 'GET, HEAD, POST'], '');
  };

  return (incoming, outgoing) => {
    respond(incoming, outgoing).then(
      (ready) => ready !== undefined && sendAnswer(ready, outgoing),
      () => sendAnswer(text(500, 'The console failed. Try again.'), outgoing),
    );
  };
}

function refuseKey({ url = '', headers, socket }: IncomingMessage): Answer {
  const isPage = /^\/console(?:\?|$)/.test(url) && headers.accept?.includes('text/html') === true;
  return isPage
    ? html(formatRefused(keyText, socket.localPort), 401, refusedHeaders)
    : text(401, `${keyText} Open the link: dev prints it, or see CONSOLE_KEY_FILE.`);
}

function text(status: number, reason: string): Answer {
  return createAnswer(status, [...consoleHeaders, 'content-type', 'text/plain; charset=utf-8'], `${reason}\n`);
}

function html(page: string, status: number, headers: readonly string[]): Answer {
  return createAnswer(status, [...headers, 'content-type', 'text/html; charset=utf-8'], page);
}

function json(value: unknown): Answer {
  return createAnswer(200, [...consoleHeaders, 'content-type', 'application/json'], JSON.stringify(value));
}

async function readBody(incoming: IncomingMessage, limit: number): Promise<string | undefined> {
  let body = '';
  for await (const chunk of incoming.setEncoding('utf8')) {
    // Read to the end, or the client would not read the response.
    if (body.length <= limit) body += String(chunk);
  }
  return body.length > limit ? undefined : body;
}
