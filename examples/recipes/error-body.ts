import { Hono } from 'hono';
import { requestId } from 'hono/request-id';
import type { ErrorBody, ErrorReport, ResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/hono';

/** The body of every error of this API. The report contains nothing of the request. */
function writeError({ status, error, description }: ErrorReport, id: string): ErrorBody {
  return { contentType: 'application/json', body: JSON.stringify({ status, code: error, message: description, id }) };
}

/** An API whose refusals have its own form, with the id that its log has. */
export function createApi(resourceServer: ResourceServer): Hono<{ Variables: { requestId: string } }> {
  const app = new Hono<{ Variables: { requestId: string } }>();
  const authorize = createAuthorize<{ Variables: { requestId: string } }>(resourceServer, {
    errorBody: (report, c) => writeError(report, c.var.requestId),
  });
  app.use(requestId({ headerName: '' })); // a new id: a header of the request would be echoed
  app.get('/messages', authorize({ scopes: ['read:messages'] }), (c) => c.json({ reader: c.var.access.claims.sub }));
  return app;
}
