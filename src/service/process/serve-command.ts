import type { Command } from './run-options.ts';
import { createService, readIssuer } from './service.ts';

/** The service with the endpoints of its variant. */
export const serveCommand: Command = {
  createService,
  async openPrimary({ settings, keyOwner }) {
    const issuer = readIssuer(settings);
    const keys = issuer === undefined ? undefined : await keyOwner.open(issuer);
    return { onReady: () => keys?.fetch() };
  },
};
