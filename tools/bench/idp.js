// The identity provider of a bench run, in its own process: discovery and keys over TLS on loopback.
import { serveRequests } from '../shared/processes.js';
import { startProvider } from '../shared/provider.js';

serveRequests({
  start: async (options) => (await startProvider({ ...options, maxAge: 3600, host: '127.0.0.1' })).domain,
});
