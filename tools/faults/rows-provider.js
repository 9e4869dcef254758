// What the provider may do to the service.
import { keysSeconds } from './scene.js';

const freshSeconds = 60;

/**
 * Makes the service fetch continuously: an unknown key forces a refresh. The requests have separate connections,
 * because they wait for the fetch in flight and requests with known keys must not.
 */
function sendStrangers(scene) {
  const source = { type: 'stranger', path: '/api/private', token: scene.mint() };
  return scene.sendKind('strangers', { source, expect: [401], rate: 10, connections: 64 });
}

/** Waits for the next fetch that brings keys, for as long as the backoff may take, and a moment for what waited on it. */
async function awaitKeys(scene, before) {
  const came = await scene.service.awaitLines('keys_fetched', before + 1, keysSeconds);
  scene.demand(came, 'no keys within the longest backoff after the provider was back');
  await scene.sleep(0.3);
}

async function isReady({ service }) {
  const { status } = await fetch(`${service.adminUrl}/readyz`);
  return status === 200;
}

const downAtStart = {
  name: 'down-at-start',
  title: 'provider down at start',
  setup: { providerDown: true },
  async play(scene) {
    await scene.begin();
    await scene.excuse(true);
    await scene.sleep(scene.pace(5, 2.5));
    scene.demand(!(await isReady(scene)), '/readyz is 200 without keys');
    await scene.mendProvider();
    scene.faultEnds();
    await awaitKeys(scene, 0);
    // A busy host delivers the last 503 responses late.
    await scene.sleep(1);
    await scene.excuse(false);
    await scene.sleep(scene.pace(3, 1.5));
    scene.demand(await isReady(scene), '/readyz is not 200 with keys');
  },
};

const outage = {
  name: 'outage',
  title: 'provider down beyond freshness and stale period',
  setup: { maxAge: freshSeconds },
  open: ({ quick }) => {
    // In the quick run so short that the provider is back before the retries are half a minute apart.
    const staleSeconds = quick ? 3 : 5;
    return { staleSeconds, environment: { KEYS_STALE: `${staleSeconds}` } };
  },
  prepare: (scene) => scene.breakProvider('down'),
  async play(scene) {
    const { staleSeconds } = scene.setup;
    const answered = async () => (await scene.load.state('steady')).answered;
    await scene.ripen(freshSeconds - 3);
    await scene.begin();
    await scene.ripen(freshSeconds);
    const byFresh = await answered();
    // The first fetch began less than a second before the provider saw it.
    await scene.ripen(freshSeconds + staleSeconds - 1.2);
    scene.demand((await answered()) > byFresh, 'stale keys were not used');
    await scene.excuse(true);
    await scene.ripen(freshSeconds + staleSeconds + 0.5);
    // Stale keys must not be used.
    await scene.expect('good', [503]);
    await scene.sleep(scene.pace(3, 0.7));
    const before = scene.service.countLines('keys_fetched');
    await scene.excuse(true);
    await scene.mendProvider();
    scene.faultEnds();
    await awaitKeys(scene, before);
    await scene.excuse(false);
    await scene.sleep(scene.pace(3, 1));
    scene.note(`fresh for ${freshSeconds} s, stale for ${staleSeconds} s`);
  },
};

/** Rows in which the keys are there, and a refresh that an unknown key forces meets the fault. */
function misleading(name, title, how, kind) {
  return {
    name,
    title,
    forced: true,
    async play(scene) {
      await scene.ripen(10);
      await scene.breakProvider(how);
      await scene.begin();
      await sendStrangers(scene);
      await scene.sleep(scene.pace(8, 4));
      await scene.mendProvider();
      scene.faultEnds();
      await scene.sleep(scene.pace(3, 1));
      scene.demand(scene.provider.misled > 0, 'the provider got no request during the fault');
      const isSeen = scene.service.lines.some((line) => line.event === 'keys_fetch_failed' && line.kind === kind);
      scene.demand(isSeen, `no fetch failed with ${kind}`);
    },
  };
}

const flaps = {
  name: 'flaps',
  title: 'provider flaps every 5 s',
  forced: true,
  async play(scene) {
    await scene.ripen(10);
    await scene.breakProvider('down');
    await scene.begin();
    await sendStrangers(scene);
    for (let flap = 0; flap < scene.pace(3, 1); flap++) {
      if (flap > 0) await scene.breakProvider('down');
      await scene.sleep(5);
      await scene.mendProvider();
      scene.faultEnds();
      await scene.sleep(scene.pace(5, 2));
    }
    scene.demand(scene.service.countLines('keys_fetch_failed') > 0, 'no fetch failed');
  },
};

/** Rows of the provider. */
export const providerRows = [
  downAtStart,
  misleading('hangs', 'provider hangs', 'hang', 'timeout'),
  misleading('drips', 'provider drips', 'drip', 'timeout'),
  misleading('closes', 'provider closes connections', 'close', 'network'),
  misleading('stalls', 'provider stalls within the body', 'stall', 'timeout'),
  misleading('redirects', 'provider redirects', 'redirect', 'redirect'),
  misleading('compresses', 'provider sends 10 MB in 10 KB', 'compress', 'too_large'),
  misleading('lies', 'provider names another issuer', 'lie', 'foreign_issuer'),
  flaps,
  outage,
];
