import type { Command } from '../server/process/service.ts';
import { describeEndpoints } from './endpoint-views.ts';
import { createService } from './service.ts';

export const serveCommand: Command = {
  name: 'serve',
  createService,
  async openPrimary({ settings, keyOwner }) {
    const { issuer } = settings;
    const keys = issuer === undefined ? undefined : await keyOwner.open(issuer);
    return { onReady: () => keys?.fetch(), routes: () => describeEndpoints(settings.variant.endpoints) };
  },
};
