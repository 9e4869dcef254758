import type { Access, ResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';

/** The members of a SvelteKit event that are used. */
interface Event {
  readonly url: URL;
  readonly request: Request;
  /** Declared as `App.Locals` in `app.d.ts`. */
  readonly locals: { access?: Access };
}

type Resolve = () => Response | Promise<Response>;

/** Creates `handle` of `hooks.server.ts`. Endpoints below /api read `event.locals.access`. */
export function createHandle(resourceServer: ResourceServer) {
  const protect = createProtect(resourceServer);
  const read = protect({ scopes: ['read:messages'] }, (_request, access, { locals }: Event, resolve: Resolve) => {
    locals.access = access;
    return resolve();
  });
  return async <E extends Event>(input: {
    readonly event: E;
    readonly resolve: (event: E) => Response | Promise<Response>;
  }): Promise<Response> => {
    const { event, resolve } = input;
    if (!event.url.pathname.startsWith('/api/')) return resolve(event);
    return read(event.request, event, () => resolve(event));
  };
}
