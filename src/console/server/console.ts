import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ConsoleState } from '../../server/console/wire.ts';
import { type Answer, createAnswer, sendAnswer } from '../../server/http/answer.ts';
import { type ConsoleKey, createSessions, isPrefetch, refuseCrossOrigin, refuseOutsiders } from './entrance.ts';
import { createEventStreams } from './event-stream.ts';
import { awaitDecision, type Hub } from './hub.ts';
import { consoleHeaders, enteredHtml, formatRefused, readPageFiles, refusedHeaders } from './page-files.ts';
import type { ExplainPasted } from './pasted.ts';
import { readTryOptions, type Tries } from './tries.ts';

export interface ConsoleOptions {
  readonly hub: Hub;
  readonly key: ConsoleKey;
  readonly state: () => ConsoleState;
  readonly tries: Tries;
  readonly paste: ExplainPasted;
}

const pastePath = '/console/api/paste';
/** Type and maximum number of characters of a request body. A paste may be a HAR. */
const bodies = new Map([
  ['/console/api/try', { type: /^application\/json\s*(?:;|$)/i, limit: 8192 }],
  [pastePath, { type: /^text\/plain\s*(?:;|$)/i, limit: 1_048_576 }],
]);
const decisionPrefix = '/console/api/decisions/';
const eventsPath = '/console/api/events';

const keyText = 'A key opens the console once.';
const linkText = 'Open a new link: dev prints it, or see CONSOLE_KEY_FILE.';

/** Handles requests under `/console`: only from this host, and only with the key or the cookie. */
export function createConsole({ hub, key, state, tries, paste }: ConsoleOptions): RequestListener {
  const sessions = createSessions();
  const openStream = createEventStreams(hub);
  let files: ReadonlyMap<string, Answer> | undefined;

  const enter = async (incoming: IncomingMessage, sent: string): Promise<Answer> => {
    if (incoming.method !== 'GET' || isPrefetch(incoming) || !(await key.take(sent))) return refuseKey(incoming);
    const headers = [...consoleHeaders, 'content-type', 'text/html; charset=utf-8'];
    return createAnswer(200, [...headers, 'set-cookie', sessions.open(incoming.socket.localPort)], enteredHtml);
  };

  /** `explain --id` and `watch` send the key with each request, because a command keeps no cookie. */
  const hasKey = ({ headers }: IncomingMessage): boolean => {
    const [, sent] = /^Bearer ([\w-]{20,64})$/.exec(headers.authorization ?? '') ?? [];
    return sent !== undefined && key.matches(sent);
  };

  const read = async (
    path: string,
    outgoing: ServerResponse,
    isAllowed: () => boolean,
  ): Promise<Answer | undefined> => {
    if (path === eventsPath) {
      return openStream(outgoing, consoleHeaders, isAllowed)
        ? undefined
        : text(503, 'Too many pages are open. Close one.');
    }
    if (path === '/console/api/state') return json(state());
    if (path.startsWith(decisionPrefix)) {
      const detail = await awaitDecision(hub, path.slice(decisionPrefix.length));
      return detail === undefined ? text(404, 'The service no longer has this decision.') : json(detail);
    }
    files ??= readPageFiles();
    return files.get(path) ?? text(404, 'The console has no such page.');
  };

  const write = async (path: string, incoming: IncomingMessage): Promise<Answer> => {
    const accepted = bodies.get(path);
    if (accepted === undefined) return text(404, 'The console has no such page.');
    if (!accepted.type.test(incoming.headers['content-type'] ?? ''))
      return text(415, 'Send JSON to try, plain text to paste.');
    const body = await readBody(incoming, accepted.limit);
    if (body === undefined) return text(413, `Send at most ${accepted.limit.toLocaleString('en')} characters.`);
    if (path === pastePath) return json(await paste(body));
    if (!tries.isOffered()) return text(404, 'Try it is available in portcullis dev only.');
    const options = readTryOptions(body);
    if (options === undefined) return text(400, 'Choose a token, a method, and a path that begins with /.');
    return json(await tries.run(options));
  };

  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<Answer | undefined> => {
    const outside = refuseOutsiders(incoming) ?? refuseCrossOrigin(incoming);
    if (outside !== undefined) return text(outside.status, outside.text);
    const { method, url = '' } = incoming;
    const [path = '', query] = url.split('?', 2);
    const sent = path === '/console' ? new URLSearchParams(query).get('key') : null;
    if (sent !== null) return enter(incoming, sent);
    const { cookie } = incoming.headers;
    const { localPort } = incoming.socket;
    const hasSession = sessions.has(cookie, localPort);
    const isForCommands = method === 'GET' && (path.startsWith(decisionPrefix) || path === eventsPath);
    if (!hasSession && !(isForCommands && hasKey(incoming))) return refuseKey(incoming);
    // Another browser may end a session, or use up the key that a command has sent.
    const isAllowed = (): boolean => !hasSession || sessions.has(cookie, localPort);
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
  if (!isPage) return text(401, `${keyText} ${linkText}`);
  const page = formatRefused(keyText, socket.localPort);
  return createAnswer(401, [...refusedHeaders, 'content-type', 'text/html; charset=utf-8'], page);
}

function text(status: number, reason: string): Answer {
  return createAnswer(status, [...consoleHeaders, 'content-type', 'text/plain; charset=utf-8'], `${reason}\n`);
}

function json(value: unknown): Answer {
  return createAnswer(200, [...consoleHeaders, 'content-type', 'application/json'], JSON.stringify(value));
}

async function readBody(incoming: IncomingMessage, limit: number): Promise<string | undefined> {
  let body = '';
  let isTooLong = false;
  for await (const chunk of incoming.setEncoding('utf8')) {
    isTooLong ||= body.length + String(chunk).length > limit;
    // Read to the end, or the client would not read the response.
    if (!isTooLong) body += String(chunk);
  }
  return isTooLong ? undefined : body;
}
