import Koa from 'koa';
import { AccessError, type Policy, type ResourceServer } from 'portcullis';
import { toResourceRequest } from 'portcullis/node';

/** Middleware for a policy. Handlers after it read `ctx.state.access`. */
export function createAuthorize(resourceServer: ResourceServer) {
  return (policy: Policy): Koa.Middleware =>
    async (ctx, next) => {
      const connection = ctx.req.socket;
      const request = toResourceRequest(ctx.req, ctx.originalUrl);
      try {
        ctx.state['access'] = await resourceServer.authorize(request, policy, connection);
      } catch (error) {
        if (!(error instanceof AccessError)) throw error; // a defect is for Koa's own error handling
        const { status, headers, body } = resourceServer.describeRefusal(error, request, { policy, connection });
        ctx.status = status;
        ctx.body = body;
        ctx.set({ ...headers });
        return;
      }
      const { dpopNonce } = ctx.state['access'];
      if (dpopNonce !== undefined) ctx.set('DPoP-Nonce', dpopNonce);
      await next();
    };
}

/** An application with one protected path. */
export function createKoa(resourceServer: ResourceServer): Koa {
  const authorize = createAuthorize(resourceServer);
  const app = new Koa();
  app.use(authorize({ scopes: ['read:messages'] }));
  app.use((ctx) => {
    ctx.body = { reader: ctx.state['access'].claims.sub };
  });
  return app;
}
