import type { Command } from '../server/process/service.ts';
import type { FindLocalTokens } from './app-route.ts';
import { describeEndpoints } from './endpoint-views.ts';
import { createService } from './service.ts';

export const createServeCommand = (findLocalTokens: FindLocalTokens): Command => ({
  name: 'serve',
  createService: (options) => createService(options, findLocalTokens),
  async openPrimary({ settings }, keyOwner) {
    const { issuer } = settings;
    const keys = issuer === undefined ? undefined : await keyOwner.open(issuer);
    return { onReady: () => keys?.fetch(), routes: () => describeEndpoints(settings.variant.endpoints) };
  },
});
