// Faults of keys, and clients with unknown keys.
const path = '/api/private';
/** Seconds that a key is published before it signs: no less than the throttle of forced refreshes. */
const leadSeconds = 11;

const rotatingSeconds = { full: 15, quick: 3 };

/** The first key, which signs the usual tokens, and those that sign from the last second on. */
function publishRotating({ bench, provider }, second) {
  const [first, ...rest] = bench.keys;
  provider.publish([first, ...rest.slice(Math.max(0, second - 1), second + leadSeconds)]);
}

const rotates = {
  name: 'rotates',
  title: 'keys rotate each second, sets overlap',
  countKeys: ({ quick }) => 1 + leadSeconds + (quick ? rotatingSeconds.quick : rotatingSeconds.full),
  forced: true,
  prepare: (scene) => publishRotating(scene, 0),
  async play(scene) {
    const seconds = scene.pace(rotatingSeconds.full, rotatingSeconds.quick);
    const rotating = (second) => ({ type: 'fixed', path, tokens: scene.mintMany(4, scene.bench.keys[second + 1]) });
    await scene.ripen(leadSeconds);
    await scene.begin({ more: [{ name: 'rotating', weight: 80, expect: [200], timed: true, source: rotating(0) }] });
    for (let second = 1; second <= seconds; second++) {
      await scene.sleep(1);
      publishRotating(scene, second);
      await scene.load.replace('steady', 'rotating', rotating(second));
    }
    scene.note(`${seconds} keys in ${seconds} s, each published ${leadSeconds} s before it signs`);
    scene.demand(scene.service.countLines('keys_fetched') > 1, 'the new keys were never fetched');
  },
};

const withdraws = {
  name: 'withdraws',
  title: 'provider withdraws a key',
  setup: { countKeys: 2 },
  countKeys: () => 3,
  forced: true,
  async play(scene) {
    const { bench, provider, service } = scene;
    const [kept, withdrawn, fresh] = bench.keys;
    await scene.ripen(9.5);
    await scene.begin({
      more: [
        {
          name: 'withdrawn',
          weight: 20,
          expect: [200],
          source: { type: 'fixed', path, tokens: scene.mintMany(10, withdrawn) },
        },
        { name: 'fresh', weight: 0, expect: [200], source: { type: 'fixed', path, tokens: scene.mintMany(10, fresh) } },
      ],
    });
    await scene.sleep(1);
    await scene.expect('withdrawn', [200, 401]);
    provider.publish([kept, fresh]);
    // The first token under the new key forces the refresh that also shows what is gone.
    await scene.load.weigh('steady', 'fresh', 5);
    const landed = await service.awaitLines('keys_fetched', 2, 10);
    scene.demand(landed, 'the new key set was not fetched');
    await scene.expect('withdrawn', [401]);
    scene.faultEnds();
    await scene.sleep(scene.pace(4, 1.5));
  },
};

/** Rows in which clients send unverifiable tokens at full rate, in addition to the constant load. */
function flood(name, title, { type, forced }) {
  return {
    name,
    title,
    forced,
    async play(scene) {
      await scene.begin();
      await scene.sleep(1);
      const source = { type, path, token: scene.mint() };
      await scene.sendKind('flood', { source, expect: [401], connections: 16 });
      await scene.sleep(scene.pace(11, 3));
      await scene.stopStream('flood');
      scene.faultEnds();
      await scene.sleep(scene.pace(3, 1));
    },
  };
}

/** Rows of keys that come and go. */
export const keyRows = [rotates, withdraws];

/** Rows of forged tokens. */
export const floodRows = [
  flood('unknown-kids', 'flood of unknown kids', { type: 'stranger', forced: true }),
  flood('bad-signatures', 'flood of bad signatures', { type: 'forged', forced: false }),
];
