export const defaultAudience = 'https://api.portcullis.example/';

export const defaultCustomClaim = 'https://portcullis.example/claim';

export const defaultIdpPort = 9443;

export const apiScopes = ['read:messages', 'write:messages'] as const;

export const demoUser = { id: 'demo-user', email: 'demo@portcullis.example' } as const;

/** Identifiers of the clients: `service` for client credentials, `app` for authorization code with PKCE. */
export const clientIds = { service: 'portcullis-service', app: 'portcullis-app' } as const;

/** Lifetime of access tokens, in seconds. */
export const tokenLifetime = 3600;

/** Prefix of console key files in the cache folder. The port of the provider follows. */
export const consoleKeyPrefix = 'console-key-';
