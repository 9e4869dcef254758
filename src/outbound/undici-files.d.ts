// Files of undici that are loaded by themselves: it has types for its index only.

declare module 'undici/lib/web/fetch/index.js' {
  const parts: Pick<typeof import('undici'), 'fetch'>;
  // biome-ignore lint/style/noDefaultExport: what a file of CommonJS exports
  export default parts;
}

declare module 'undici/lib/dispatcher/agent.js' {
  import { Agent } from 'undici';
  // biome-ignore lint/style/noDefaultExport: as above
  export default Agent;
}

declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici';
  // biome-ignore lint/style/noDefaultExport: as above
  export default Pool;
}
