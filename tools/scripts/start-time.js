// node tools/scripts/start-time.js [FOLDER …]: time from spawn until the service listens, while the provider is unreachable.
import { timeStart } from '../bench/figures/start.js';
import { compareBuilds, node } from './compare-builds.js';

await compareBuilds('start to listening', (folder) => timeStart({ folder, node }));
