import { once } from 'node:events';
import {
  createServer as createPlainServer,
  type IncomingMessage,
  type RequestListener,
  request as requestPlain,
  type Server,
} from 'node:http';
import { type Agent, createServer as createTlsServer, request as requestTls } from 'node:https';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { expect } from 'vitest';
import { createProtect } from '../../src/adapters/node.ts';
import { readNodeRequest } from '../../src/adapters/node-request.ts';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { AccessError, type Reason } from '../../src/core/failures.ts';
import {
  createIntrospection,
  type Introspection,
  type IntrospectionOptions,
} from '../../src/core/introspection/introspection.ts';
import type { Policy } from '../../src/core/policy/policy.ts';
import type { AnyServerOptions } from '../../src/core/resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { explain } from '../../src/explain/explain.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { exchange, readStatuses } from '../support/http-client.ts';
import { listen } from '../support/listening.ts';
import { reasonsOutsideDryRun } from '../support/reasons-without-check.ts';
import type { ApiAnswer } from './library-case.ts';
import type { ClientIdentity, LibraryWorld } from './library-world.ts';

/** Bytes of a head, equal to the service's. */
const maxHeaderSize = 32_768;
const tls = { maxHeaderSize, requestCert: true, rejectUnauthorized: false };

/** The listener and the policy of an API. */
export interface ApiOptions {
  /** Default: any valid token will do. */
  readonly policy?: Policy<unknown>;
  /** Default `plain`. `tls` requests a client certificate, and accepts any. */
  readonly listener?: 'plain' | 'tls';
}

/** Options of one request in addition to its headers. */
export interface CallOptions {
  /** Presented on TLS. Default: none. */
  readonly certificate?: ClientIdentity;
  /** Default: a new connection. */
  readonly agent?: Agent;
  /** Default GET. */
  readonly method?: string;
}

/** An API: a listener with a resource server before it. */
export interface Api {
  readonly url: string;
  readonly server: ResourceServer;
  /** Sends header lines: names and values in turn. */
  call(headers: readonly string[], options?: CallOptions): Promise<ApiAnswer>;
  /** Sends a token as Bearer. */
  bear(token: string, options?: CallOptions): Promise<ApiAnswer>;
  /** A bound token and its proof, which are valid: the base of an attack. */
  admit(token: string, options?: CallOptions): Promise<void>;
  /** Sends raw bytes; the reason is unknown. */
  callRaw(bytes: string): Promise<ApiAnswer>;
}

/** The environment of one case: it opens its servers, and sets the clock. */
export interface Stage {
  /** Lets time pass for every API and introspection of this stage; seconds, backwards where negative. */
  wait(seconds: number): void;
  /** Stops all these clocks at a time in seconds since the epoch: what comes then is not a matter of how busy the machine is. */
  stopAt(time: number): void;
  /** Seconds since the epoch, whole. */
  now(): number;
  open(options?: Partial<Omit<AnyServerOptions<'required'>, 'issuer'>>, api?: ApiOptions): Promise<Api>;
  /** Introspection at the endpoint of the world, in the name of its first issuer. */
  introspect(options?: Partial<IntrospectionOptions>): Introspection;
  /** Closes everything; throws if a response or an event contains a part of the input. */
  close(): Promise<void>;
}

/** Credentials of this resource server at the introspection endpoint. */
const clientSecret = 'a secret of the resource server, 1:%+';

/** The dry run before a request has its reason, unless it says that it cannot know. */
function expectEqual(explanation: Explanation | undefined, reason: Reason | null): void {
  if (explanation === undefined || (reason !== null && reasonsOutsideDryRun.includes(reason))) return;
  const { verdict, reason: found = null } = explanation;
  if (verdict !== 'undecided') expect(found).toBe(reason);
}

/** Opens the stage for one case. */
export function openStage({ issuer, endpoint, ours, marker }: LibraryWorld): Stage {
  const closing: (() => unknown)[] = [];
  const said: string[] = [];
  const sent = new Set([marker, clientSecret]);
  let offset = 0;
  let stopped: number | undefined;
  const seconds = (): number => stopped ?? Date.now() / 1000 + offset;

  return {
    wait: (passed) => {
      offset += passed;
    },
    stopAt: (time) => {
      stopped = time;
    },
    now: () => Math.floor(seconds()),
    async open(options = {}, { policy = {}, listener = 'plain' } = {}) {
      const reasons = new Map<number | undefined, Reason>();
      // A store or a cache of the usual size takes longer to make than a case to play.
      const replay = createMemoryReplayStore({ capacity: 1000, now: seconds, since: 0 });
      const server = createResourceServer({
        issuers: [issuer],
        audience: issuer.audience,
        now: seconds,
        tokenCache: { maxEntries: 100 },
        onEvent: (event) => said.push(inspect(event, { depth: 20, showHidden: true })),
        ...options,
        dpop: { replay, ...options.dpop },
      });
      const onRefused = (error: unknown, { socket }: IncomingMessage): void =>
        void reasons.set(socket.remotePort, error instanceof AccessError ? error.reason : 'unexpected');
      const protect = createProtect(server, { onRefused })(policy, (_request, response) => response.end());
      const explained = new Map<number | undefined, Explanation | undefined>();
      const handle: RequestListener = async (incoming, response) => {
        const { socket } = incoming;
        // A resolver of the case may fail.
        explained.set(
          socket.remotePort,
          await explain(server, readNodeRequest(incoming), policy, socket).catch(() => undefined),
        );
        return protect(incoming, response);
      };
      const http: Server =
        listener === 'plain'
          ? createPlainServer({ maxHeaderSize }, handle)
          : // Self-signed certificates (RFC 8705 §2.2): TLS proves possession, and no authority is needed.
            createTlsServer({ ...tls, cert: ours.cert, key: ours.key }, handle);
      const { port, close } = await listen(http);
      closing.push(() => {
        server.close();
        return close();
      });
      const url = `${listener === 'plain' ? 'http' : 'https'}://localhost:${port}/messages`;

      const call: Api['call'] = async (headers, { certificate, agent, method = 'GET' } = {}) => {
        for (const value of headers) for (const trace of value.match(/[\w-]{40,}/g) ?? []) sent.add(trace);
        const lines = headers.some((name) => /^host$/i.test(name)) ? headers : ['Host', new URL(url).host, ...headers];
        const options = { method, headers: [...lines], family: 4, agent: agent ?? (false as const) };
        const credentials = certificate === undefined ? {} : { cert: certificate.cert, key: certificate.key };
        const outgoing =
          listener === 'plain'
            ? requestPlain(url, { ...options, agent: false })
            : requestTls(url, { ...options, ca: ours.ca, ...credentials });
        const [response] = (await once(outgoing.end(), 'response')) as [IncomingMessage];
        const { statusCode: status = 0, rawHeaders, socket } = response;
        const { localPort } = socket; // undefined after the end of the response
        said.push(rawHeaders.join('\n'), await text(response));
        const reason = reasons.get(localPort) ?? null;
        reasons.delete(localPort);
        expectEqual(explained.get(localPort), reason);
        return { status, reason };
      };
      const bear: Api['bear'] = (token, more) => call(['Authorization', `Bearer ${token}`], more);
      return {
        url,
        server,
        call,
        bear,
        async admit(token, more) {
          // Kept when it comes for the second time.
          for (const _time of ['first', 'second']) {
            expect(await bear(token, more)).toEqual({ status: 200, reason: null });
          }
        },
        async callRaw(bytes) {
          const received = await exchange(port, bytes);
          said.push(received);
          return { status: readStatuses(received)[0] ?? 0, reason: null };
        },
      };
    },
    introspect(options = {}) {
      const introspection = createIntrospection({
        endpoint: endpoint.url,
        issuer: issuer.issuer,
        clientId: 'api',
        clientSecret,
        ca: endpoint.ca,
        environment: {},
        now: seconds,
        ...options,
      });
      closing.push(() => introspection.close());
      return introspection;
    },
    async close() {
      for (const end of closing) await end();
      const all = said.join('\n');
      for (const trace of sent) expect(all).not.toContain(trace);
    },
  };
}
