import express, { type Express, type RequestHandler } from 'express';
import type { ResourceServer } from 'portcullis';
import { type Authorize, createAuthorize } from 'portcullis/express';

/** Allows N requests of one user in each window. A user is a subject of an issuer. */
function limitUsers({ accessOf }: Authorize, calls: number, windowSeconds: number): RequestHandler {
  const windows = new Map<string, { readonly end: number; used: number }>();
  return (req, res, next) => {
    const { iss, sub } = accessOf(req).claims;
    const user = JSON.stringify([iss, sub]);
    const now = Date.now() / 1000;
    for (const [name, { end }] of windows) if (end <= now) windows.delete(name);
    const window = windows.get(user) ?? { end: now + windowSeconds, used: 0 };
    windows.set(user, window);
    window.used++;
    if (window.used <= calls) return next();
    res.set('retry-after', String(Math.ceil(window.end - now)));
    res.status(429).json({ detail: 'Too many calls.' });
  };
}

/** The limit counts after authorization: no client can exhaust the limit of another user. */
export function createLimited(resourceServer: ResourceServer): Express {
  const authorize = createAuthorize(resourceServer);
  const app = express();
  app.use('/api', authorize(), limitUsers(authorize, 2, 60));
  app.get('/api/messages', authorize({ scopes: ['read:messages'] }), (req, res) => {
    res.json({ reader: authorize.accessOf(req).claims.sub });
  });
  return app;
}
