import { randomBytes } from 'node:crypto';
import type Provider from 'oidc-provider';
import type { Configuration, KoaContextWithOIDC } from 'oidc-provider';
import { fetchDirectly } from '../../core/outbound/outbound.ts';
import { devGrant } from '../tokens/dev-token.ts';
import { demoClaims, type MintOptions } from '../tokens/minting.ts';
import { apiScopes, clientIds, demoUser, tokenLifetime } from './defaults.ts';
import { interactionPath } from './interaction.ts';
import { type Libraries, muteNotices } from './libraries.ts';
import { isLoopbackOrigin } from './local-request.ts';
import { exportJwk } from './signing-key.ts';
import { tokenExchange } from './token-exchange.ts';

export interface ProviderOptions extends MintOptions {
  readonly clientSecret: string;
  /** Returns the URL of the service; `undefined` before it runs. Logout tokens are sent there. */
  readonly serviceUrl: () => string | undefined;
}

/** Address of the service's endpoint in the registration of the client: its port is not known yet. */
const logoutUri = 'https://service.invalid/backchannel-logout';
const oidcScopes = ['openid', 'email', 'offline_access'];

/**
 * Lists the scopes of the API: the demo's, and every one that the client requests, since the provider does not know the APIs
 * of its users. A scope that a client does not request is not granted.
 */
function listScopes({ params, entities }: KoaContextWithOIDC['oidc']): string {
  const { AuthorizationCode: code, RefreshToken: refresh } = entities;
  const requested = `${params?.['scope'] ?? ''} ${code?.scope ?? ''} ${refresh?.scope ?? ''}`.match(scopeTokens) ?? [];
  return [...new Set([...apiScopes, ...requested])].filter((name) => !oidcScopes.includes(name)).join(' ');
}

/** RFC 6749 §3.3. */
const scopeTokens = /[\x21\x23-\x5b\x5d-\x7e]+/g;

type SignedIn = Readonly<{ client: { readonly clientId: string }; account: { readonly accountId: string } }>;

/** Redirect paths of local applications, with any port (RFC 8252 §7.3). */
const callbackPaths = ['/', '/callback', '/auth/callback', '/cb'];

export function createProvider(libraries: Libraries, options: ProviderOptions): Provider {
  const unmute = muteNotices();
  try {
    return new libraries.oidc.Provider(options.issuer, configure(libraries, options));
  } finally {
    unmute();
  }
}

/** Claims of a user, and the session, which the tokens of a refresh have too. */
function describeUser({ Account, AuthorizationCode, RefreshToken }: KoaContextWithOIDC['oidc']['entities']) {
  const claims = Account === undefined ? {} : { permissions: apiScopes, email: demoUser.email };
  return { ...claims, sid: (AuthorizationCode ?? RefreshToken)?.sid };
}

function configure({ oidc }: Libraries, options: ProviderOptions): Configuration {
  const { audience, signingKey } = options;
  const resource = resourceOf(audience);
  return {
    clients: [
      {
        client_id: clientIds.service,
        client_secret: options.clientSecret,
        grant_types: ['client_credentials', tokenExchange, devGrant],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: clientIds.app,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        backchannel_logout_uri: logoutUri,
        backchannel_logout_session_required: true,
        redirect_uris: callbackPaths.flatMap((path) => [`http://127.0.0.1${path}`, `http://localhost${path}`]),
      },
    ],
    jwks: { keys: [exportJwk(signingKey)] },
    routes: { jwks: '/.well-known/jwks.json' },
    scopes: oidcScopes,
    claims: { openid: ['sub'], email: ['email'] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    ttl: {
      AccessToken: tokenLifetime,
      ClientCredentials: tokenLifetime,
      IdToken: tokenLifetime,
      Grant: 86_400,
      Session: 86_400,
      Interaction: 600,
      AuthorizationCode: 60,
      RefreshToken: 86_400,
    },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        logoutSource: (context, form) => {
          context.body = `${form}<button form="op.logoutForm" name="logout" value="yes">Sign out</button>`;
        },
        postLogoutSuccessSource: (context) => {
          context.body = 'Signed out.';
        },
      },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      // Clients of MCP register themselves (RFC 7591).
      registration: {
        enabled: true,
        idFactory(context) {
          // Clients register the scope of their first challenge, which would refuse them the scopes of a later one.
          const metadata: Record<string, unknown> = Object(context.oidc.body);
          delete metadata['scope'];
          return randomBytes(16).toString('base64url');
        },
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (context, indicator) => {
          if (!isSameUrl(indicator, resource)) throw new oidc.errors.InvalidTarget();
          const jwt = { sign: { alg: 'RS256', kid: signingKey.kid } } as const;
          return { scope: listScopes(context.oidc), audience, accessTokenFormat: 'jwt', jwt };
        },
      },
    },
    interactions: { url: (_context, { uid }) => `${interactionPath}${uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub, email: demoUser.email }) }),
    // A logout of the session reaches its access tokens by this claim.
    extraTokenClaims: ({ oidc: { entities } }) => ({ ...demoClaims(options.customClaim), ...describeUser(entities) }),
    // The provider refuses addresses of this host, and the service is on this host.
    fetch: (url, init) =>
      send(new Request(String(url) === logoutUri ? new URL('/backchannel-logout', options.serviceUrl()) : url, init)),
    // Without offline_access too: few clients request it.
    issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
    // For the fixed client, consent to everything is given in advance. A client that registered itself needs the user's.
    loadExistingGrant: async ({ oidc: context }) => {
      const { client, account } = context as SignedIn; // grants are looked up once both are known
      const { provider, session, result } = context;
      if (client.clientId !== clientIds.app) {
        const id = result?.consent?.grantId ?? session?.grantIdFor(client.clientId);
        return id === undefined ? undefined : provider.Grant.find(id);
      }
      const grant = new context.provider.Grant({ clientId: client.clientId, accountId: account.accountId });
      grant.addOIDCScope('openid email');
      grant.addResourceScope(resource, listScopes(context));
      await grant.save();
      return grant;
    },
    clientBasedCORS: (_context, origin) => isLoopbackOrigin(origin),
    renderError: (context, { error, error_description: description }) => {
      context.type = 'text/plain';
      context.body = `${error}: ${description}\n`;
    },
  };
}

const limits = { timeoutSeconds: 5, maxBytes: 256 * 1024 };

/** Sends a request of the provider: a logout token, or for the keys of a client. */
async function send(request: Request): Promise<Response> {
  const { method, url } = request;
  const headers = Object.fromEntries(request.headers);
  const sent = { method, headers, ...(method === 'POST' && { body: await request.text() }) };
  const { status, body } = await fetchDirectly(new URL(url), sent, limits);
  return new Response(body.length === 0 ? null : Uint8Array.from(body), { status });
}

/** Clients write a URL as their parser does, for example with a slash after the host. */
function isSameUrl(indicator: string, resource: string): boolean {
  return indicator === resource || (URL.canParse(resource) && indicator === new URL(resource).href);
}

/** The audience as a resource indicator, which is an absolute URI without a fragment (RFC 8707 §2). */
function resourceOf(audience: string): string {
  return URL.canParse(audience) && !audience.includes('#')
    ? audience
    : `urn:portcullis:audience:${encodeURIComponent(audience)}`;
}
