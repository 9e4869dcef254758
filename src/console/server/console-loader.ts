import type { ConsoleLoader } from '../../server/console/opened-console.ts';

export const consoleLoader: ConsoleLoader = {
  openConsole: async (options) => (await import('./open-console.ts')).openConsole(options),
};
