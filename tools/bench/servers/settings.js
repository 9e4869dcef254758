// Settings and bodies of every server of the bench: the same endpoints and checks.
const { ISSUER = '', JWKS_URI = '', AUDIENCE = '', PORT } = process.env;

export const issuer = ISSUER;
export const jwksUri = JWKS_URI;
export const audience = AUDIENCE;
export const port = Number(PORT);
export const host = '127.0.0.1';

export const messages = {
  public: 'Public endpoint: open to all clients, no access token is needed.',
  private: 'Private endpoint: any valid access token opens it.',
};

export const openAnswer = () => ({ message: messages.public });
export const privateAnswer = (claims) => ({ message: messages.private, user_id: claims.sub });
