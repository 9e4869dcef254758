/** Audience of the demonstration API. */
export const defaultAudience = 'https://api.portcullis.example/';

/** Name of the claim that the profile endpoint shows. */
export const defaultCustomClaim = 'https://portcullis.example/claim';

/** Port of the local identity provider. */
export const defaultIdpPort = 9443;

/** Scopes that the demonstration API knows. */
export const apiScopes = ['read:messages', 'write:messages'] as const;

/** The one person that can sign in. */
export const demoUser = { id: 'demo-user', email: 'demo@portcullis.example' } as const;

/** Identifiers of the clients: `service` for client credentials, `app` for authorization code with PKCE. */
export const clientIds = { service: 'portcullis-service', app: 'portcullis-app' } as const;

/** Seconds for which an access token is valid. */
export const tokenLifetime = 3600;

/** In the cache folder: files with keys of consoles, named by the port of the provider. */
export const consoleKeyPrefix = 'console-key-';
