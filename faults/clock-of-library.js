// The same steps of the clock where it cannot be set for a process: through `now` of the library, in this process.
import { createPublicKey } from 'node:crypto';
import { createResourceServer } from '../dist/index.js';
import { audience } from './tokens.js';

const minute = 60;
const batch = 500;

/** Judges tokens under a clock that steps; counts go to the scene as if they had been requests. */
export async function playClockOfLibrary(scene) {
  const start = Math.floor(Date.now() / 1000);
  let offset = 0;
  const publicKey = createPublicKey(scene.key.privateKey);
  const server = createResourceServer({
    issuers: [
      {
        issuer: scene.issuer,
        keys: { find: () => publicKey, has: () => true, usable: () => true, refetch: () => undefined },
      },
    ],
    audience,
    now: () => start + offset,
  });
  const tokens = {
    steady: scene.mint(),
    'ends in 5 min': scene.mint({ exp: start + 5 * minute }),
    'issued just now': scene.mint({ iat: start }),
  };
  const judge = (token) => {
    try {
      server.authorize({
        method: 'GET',
        url: 'http://localhost/',
        headers: new Headers({ host: 'localhost', authorization: `Bearer ${token}` }),
      });
      return 'good';
    } catch (error) {
      return error.reason;
    }
  };
  const expected = [
    [0, { steady: 'good', 'ends in 5 min': 'good', 'issued just now': 'good' }],
    [10 * minute, { steady: 'good', 'ends in 5 min': 'expired', 'issued just now': 'good' }],
    [-10 * minute, { steady: 'good', 'ends in 5 min': 'good', 'issued just now': 'issued_in_future' }],
    [0, { steady: 'good', 'ends in 5 min': 'good', 'issued just now': 'good' }],
  ];
  await scene.begin();
  for (const [by, outcomes] of expected) {
    offset = by;
    for (const [kind, outcome] of Object.entries(outcomes)) {
      for (let count = 0; count < batch; count++) {
        scene.demand(judge(tokens[kind]) === outcome, `clock ${by} s: "${kind}" was not ${outcome}`);
      }
    }
    await scene.sleep(1);
  }
  scene.note(
    `libfaketime is not installed: ${expected.length * 3 * batch} tokens judged by the library under a clock of its own`,
  );
}
