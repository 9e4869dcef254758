import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { codeOf } from '../../core/shown-text.ts';
import { registerDevTokens } from '../tokens/dev-token.ts';
import { createMint } from '../tokens/minting.ts';
import type { TokenOptions } from '../tokens/token-options.ts';
import { type Environment, findCacheFolder, makeCacheFolder } from './cache-folder.ts';
import { LocalIdpFailure } from './failure.ts';
import { ensureIdentity } from './identity.ts';
import { createIdpClient } from './idp-client.ts';
import { createInteraction, interactionPath } from './interaction.ts';
import { describeRuntime, type Libraries, loadLibraries } from './libraries.ts';
import { isLocalRequest } from './local-request.ts';
import { createProvider, type ProviderOptions } from './provider.ts';
import { announceRunning, type RunningIdp } from './running.ts';
import { makeSigningKey, type SigningKey } from './signing-key.ts';
import { registerTokenExchange } from './token-exchange.ts';

export interface LocalIdpOptions {
  /** `0`: any free port. */
  readonly port: number;
  readonly audience: string;
  readonly customClaim: string;
  /** Default: `portcullis` in the user's cache folder. */
  readonly cacheFolder?: string;
  /** Default: the environment of this process. */
  readonly environment?: Environment;
  /** Current time in seconds since the epoch. Default: the system clock. */
  readonly now?: () => number;
  /** Default: generates a key. Tests share keys, because RSA generation is slow. */
  readonly makeKey?: () => Promise<SigningKey>;
}

export type LocalIdp = Awaited<ReturnType<typeof startLocalIdp>>;

const forDevelopment = 'The provider is for development only: clients sign in without a password.';

/**
 * Starts an OpenID provider on `https://localhost:<port>/` for development. It signs every local user in. Rejects with
 * `LocalIdpFailure` in production, without its packages, or if the port is in use.
 */
export async function startLocalIdp(options: LocalIdpOptions) {
  const { environment = process.env, now = () => Date.now() / 1000, makeKey = makeSigningKey } = options;
  if (environment['NODE_ENV'] === 'production') {
    throw new LocalIdpFailure(
      'The local identity provider is for development only: it does not start with NODE_ENV=production',
    );
  }
  const libraries = await loadLibraries();
  const cacheFolder = options.cacheFolder ?? findCacheFolder(environment);
  await makeCacheFolder(cacheFolder);
  const identity = await ensureIdentity(cacheFolder, now());
  const signingKey = await makeKey();

  const server = createServer({ cert: identity.certificate, key: identity.key });
  const stop = createStop(server);
  const domain = `localhost:${await listen(server, options.port)}`;
  const issuer = `https://${domain}/`;
  let serviceUrl: string | undefined;
  const { clientSecret } = identity;
  const provide = { ...options, serviceUrl: () => serviceUrl, issuer, now, clientSecret, signingKey };
  const handle = createHandler(libraries, provide);
  // Only an aborted request fails here.
  server.on('request', (request, response) => handle(request, response).catch(() => response.destroy()));
  try {
    const known = { issuer, started: now(), audience: options.audience };
    const withdraw = await announceRunning(cacheFolder, known);
    const client = createIdpClient(issuer, identity);
    return {
      ...{ issuer, domain },
      /** Certificate to trust, in PEM. */
      certificateFile: identity.certificateFile,
      clientSecretFile: identity.clientSecretFile,
      notices: [forDevelopment, ...describeRuntime(process.versions.node)],
      token: (order: TokenOptions = {}) => client.getToken(order),
      /** Announces the service and its variables to other commands. */
      async announceService(service: Pick<RunningIdp, 'service' | 'admin'>, variables?: RunningIdp['variables']) {
        serviceUrl = service.service;
        await announceRunning(cacheFolder, { ...known, ...service, ...(variables !== undefined && { variables }) });
      },
      async close(): Promise<void> {
        await withdraw();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function createHandler(libraries: Libraries, options: ProviderOptions) {
  const provider = createProvider(libraries, options);
  const provide = provider.callback();
  const interact = createInteraction(provider);
  const mint = createMint(options);
  registerTokenExchange(provider, libraries, { ...options, mint });
  registerDevTokens(provider, libraries, mint);
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isLocalRequest(request.socket.remoteAddress, request.headers.host)) {
      // RFC 9110 §15.5.20
      response.writeHead(421).end();
      return undefined;
    }
    return request.url?.startsWith(interactionPath) ? interact(request, response) : provide(request, response);
  };
}

async function listen(server: Server, port: number): Promise<number> {
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch (cause) {
    const state = codeOf(cause) === 'EADDRINUSE' ? 'is in use' : 'cannot be opened';
    const advice = 'Set another one with --idp-port, or 0 for a free one';
    throw new LocalIdpFailure(`Port ${port} of the local identity provider ${state}. ${advice}`, cause);
  }
  return (server.address() as AddressInfo).port; // it listens on TCP
}

/** Returns a function that stops the server and its sockets, also during a TLS handshake. */
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
