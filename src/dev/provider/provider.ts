import { randomBytes } from 'node:crypto';
import type Provider from 'oidc-provider';
import type { Configuration } from 'oidc-provider';
import { demoClaims } from '../tokens/minting.ts';
import { apiScopes, clientIds, demoUser, tokenLifetime } from './defaults.ts';
import { interactionPath } from './interaction.ts';
import { type Libraries, muteNotices } from './libraries.ts';
import { isLoopbackOrigin } from './local-request.ts';
import { exportJwk, type SigningKey } from './signing-key.ts';

/** What the provider is made from. */
export interface ProviderOptions {
  /** With the trailing slash. */
  readonly issuer: string;
  readonly audience: string;
  readonly customClaim: string;
  readonly clientSecret: string;
  /** Signs what the token endpoint issues. */
  readonly signingKey: SigningKey;
  /** Is published beside it. */
  readonly developmentKey: SigningKey;
}

const scope = apiScopes.join(' ');

interface SignedIn {
  readonly client: { readonly clientId: string };
  readonly account: { readonly accountId: string };
}

/** Paths that an application on this machine may be called back on, on any port (RFC 8252 §7.3). */
const callbackPaths = ['/', '/callback', '/auth/callback', '/cb'];

/** Creates the provider; nothing listens yet. */
export function createProvider(libraries: Libraries, options: ProviderOptions): Provider {
  const unmute = muteNotices();
  try {
    return new libraries.oidc.Provider(options.issuer, configure(libraries, options));
  } finally {
    unmute();
  }
}

function configure({ oidc }: Libraries, options: ProviderOptions): Configuration {
  const { audience, signingKey, developmentKey } = options;
  const resource = resourceOf(audience);
  const extraClaims = { ...demoClaims(options.customClaim) };
  return {
    clients: [
      {
        client_id: clientIds.service,
        client_secret: options.clientSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: clientIds.app,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        response_types: ['code'],
        redirect_uris: callbackPaths.flatMap((path) => [`http://127.0.0.1${path}`, `http://localhost${path}`]),
      },
    ],
    jwks: { keys: [exportJwk(signingKey), exportJwk(developmentKey)] },
    routes: { jwks: '/.well-known/jwks.json' },
    scopes: ['openid', 'email'],
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
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, indicator) => {
          if (indicator !== resource) throw new oidc.errors.InvalidTarget();
          return { scope, audience, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256', kid: signingKey.kid } } };
        },
      },
    },
    interactions: { url: (_context, { uid }) => `${interactionPath}${uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub, email: demoUser.email }) }),
    extraTokenClaims: () => extraClaims,
    // Consent is given ahead, to everything: nobody is asked on a development machine.
    loadExistingGrant: async ({ oidc: context }) => {
      const { client, account } = context as SignedIn; // grants are looked up once both are known
      const grant = new context.provider.Grant({ clientId: client.clientId, accountId: account.accountId });
      grant.addOIDCScope('openid email');
      grant.addResourceScope(resource, scope);
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

/** The audience as a resource indicator, which is an absolute URI without a fragment (RFC 8707 §2). */
function resourceOf(audience: string): string {
  return URL.canParse(audience) && !audience.includes('#')
    ? audience
    : `urn:portcullis:audience:${encodeURIComponent(audience)}`;
}
