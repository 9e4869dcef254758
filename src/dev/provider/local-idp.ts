import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import {
  createDevTokenEndpoint,
  createIntrospectionEndpoint,
  devTokenPath,
  introspectionPath,
} from '../tokens/dev-token.ts';
import { createMinting } from '../tokens/minting.ts';
import type { TokenOrder } from '../tokens/token-order.ts';
import { jsonAnswer, send } from './answer.ts';
import { type Environment, findCacheFolder, makeCacheFolder } from './cache-folder.ts';
import { errorCode, LocalIdpFailure } from './failure.ts';
import { ensureIdentity, type Identity } from './identity.ts';
import { createIdpClient } from './idp-client.ts';
import { createInteraction, interactionPath } from './interaction.ts';
import { describeRuntime, type Libraries, loadLibraries } from './libraries.ts';
import { isLocalRequest } from './local-request.ts';
import { createProvider } from './provider.ts';
import { announceRunning } from './running.ts';
import { makeSigningKey, type SigningKey } from './signing-key.ts';

/** Options of {@link startLocalIdp}. */
export interface LocalIdpOptions {
  /** `0` picks a free one. */
  readonly port: number;
  /** Audience of the access tokens. */
  readonly audience: string;
  /** Name of the custom claim in the access tokens. */
  readonly customClaim: string;
  /** Default: `portcullis` in the user's cache folder. */
  readonly cacheFolder?: string;
  /** Default: the environment of this process. */
  readonly environment?: Environment;
  /** Seconds since the epoch. Default: the clock of this machine. */
  readonly now?: () => number;
  /** Default: makes a new one. Tests give kept keys, since to make an RSA key takes long. */
  readonly makeKey?: () => Promise<SigningKey>;
}

/** A running local identity provider. */
export interface LocalIdp {
  /** `https://localhost:<port>/`. */
  readonly issuer: string;
  /** Host and port. */
  readonly domain: string;
  /** PEM file of the certificate to trust. */
  readonly certificateFile: string;
  /** File with the secret of the service client. */
  readonly clientSecretFile: string;
  /** Where opaque tokens are asked about, as the service client. */
  readonly introspectionEndpoint: string;
  /** What whoever starts it must know; one sentence each. */
  readonly notices: readonly string[];
  /** An access token of the service client. */
  token(order?: TokenOrder): Promise<string>;
  /** Says where the service is that was started with it, and which variables set it. */
  announceService(url: string, variables?: Readonly<Record<string, string>>): Promise<void>;
  /** Stops it at once. */
  close(): Promise<void>;
}

const forDevelopment =
  'The local identity provider is for development only: whoever reaches it signs in without a password.';

/**
 * Starts an OpenID provider on `https://localhost:<port>/` for development: it signs anybody on this machine in.
 * Rejects with `LocalIdpFailure` in production, without its packages, or where the port is taken.
 */
export async function startLocalIdp(options: LocalIdpOptions): Promise<LocalIdp> {
  const { environment = process.env, now = () => Date.now() / 1000, makeKey = makeSigningKey } = options;
  if (environment['NODE_ENV'] === 'production') {
    throw new LocalIdpFailure(
      'The local identity provider is for development only: it does not start with NODE_ENV=production.',
    );
  }
  const libraries = await loadLibraries();
  const cacheFolder = options.cacheFolder ?? findCacheFolder(environment);
  await makeCacheFolder(cacheFolder);
  const identity = await ensureIdentity(cacheFolder, now());
  const [signingKey, developmentKey] = await Promise.all([makeKey(), makeKey()]);

  const server = createServer({ cert: identity.certificate, key: identity.key });
  const stop = createStop(server);
  const domain = `localhost:${await listen(server, options.port)}`;
  const issuer = `https://${domain}/`;
  const provide = { ...options, issuer, now, clientSecret: identity.clientSecret, signingKey, developmentKey };
  const handle = createHandler(libraries, provide);
  // What fails here is a request that was broken off.
  server.on('request', (request, response) => handle(request, response).catch(() => response.destroy()));
  try {
    const known = { issuer, pid: process.pid, started: now(), audience: options.audience };
    const withdraw = await announceRunning(cacheFolder, known);
    const announceService: LocalIdp['announceService'] = async (service, variables) => {
      await announceRunning(cacheFolder, { ...known, service, ...(variables !== undefined && { variables }) });
    };
    return running({ issuer, domain, identity, announceService, withdraw, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Running {
  readonly issuer: string;
  readonly domain: string;
  readonly identity: Identity;
  readonly announceService: LocalIdp['announceService'];
  readonly withdraw: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

function running({ issuer, domain, identity, announceService, withdraw, stop }: Running): LocalIdp {
  const client = createIdpClient(issuer, identity);
  return {
    issuer,
    domain,
    certificateFile: identity.certificateFile,
    clientSecretFile: identity.clientSecretFile,
    introspectionEndpoint: new URL(introspectionPath, issuer).href,
    notices: [forDevelopment, ...describeRuntime(process.versions.node)],
    token: (order = {}) => client.getToken(order),
    announceService,
    async close() {
      await withdraw();
      await stop();
    },
  };
}

type HandlerOptions = Parameters<typeof createProvider>[1] & Pick<Parameters<typeof createMinting>[0], 'now'>;

function createHandler(libraries: Libraries, options: HandlerOptions) {
  const provider = createProvider(libraries, options);
  const provide = provider.callback();
  const interact = createInteraction(provider);
  const { mint, introspect } = createMinting({ ...options, key: options.developmentKey });
  const answerDevToken = createDevTokenEndpoint(mint, options.clientSecret);
  const answerIntrospection = createIntrospectionEndpoint(introspect, options.clientSecret);
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isLocalRequest({ peer: request.socket.remoteAddress, host: request.headers.host })) {
      // RFC 9110 §15.5.20
      return send(response, jsonAnswer(421, { error: 'invalid_request' }));
    }
    const path = String(request.url).replace(/\?.*$/s, '');
    if (path === devTokenPath) return send(response, await answerDevToken(request));
    if (path === introspectionPath) return send(response, await answerIntrospection(request));
    if (path.startsWith(interactionPath)) return interact(request, response);
    return provide(request, response);
  };
}

/** Listens only on loopback; returns the port. */
async function listen(server: Server, port: number): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
  } catch (cause) {
    const state = errorCode(cause) === 'EADDRINUSE' ? 'is taken' : 'cannot be opened';
    throw new LocalIdpFailure(
      `Port ${port} of the local identity provider ${state}. Choose another with --idp-port, or 0 for a free one.`,
      { cause },
    );
  }
  return (server.address() as AddressInfo).port; // it listens on TCP
}

/** Remembers the sockets of a server; the returned function stops it, those in the middle of a handshake included. */
function createStop(server: Server): () => Promise<void> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
}
