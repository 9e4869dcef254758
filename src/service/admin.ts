import { Hono } from 'hono';

/** Whether requests should be sent here, and why not. */
export interface Readiness {
  readonly ready: boolean;
  /** `ok`, or what is missing, by part of the service. */
  readonly checks: Readonly<Record<string, string>>;
}

/** Where the admin endpoints get their answers. */
export interface AdminSources {
  readonly readiness: () => Readiness | Promise<Readiness>;
  /** Prometheus text. */
  readonly metrics: () => string | Promise<string>;
}

/** The app of the admin listener: liveness, readiness, metrics. No sockets, no authentication: bind it to loopback. */
export function createAdminApp({ readiness, metrics }: AdminSources): Hono {
  const app = new Hono();
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/readyz', async (c) => {
    const state = await readiness();
    return c.json(state, state.ready ? 200 : 503);
  });
  app.get('/metrics', async (c) => c.text(await metrics(), 200, { 'content-type': 'text/plain; version=0.0.4' }));
  return app;
}
