// Figures of the service alone.
import { measureGrowth } from './figures/growth.js';
import { measureImport } from './figures/import.js';
import { measureMemory } from './figures/memory.js';
import { measureStart } from './figures/start.js';
import { measureWorkers } from './figures/workers.js';

export const figures = {
  start: measureStart,
  import: measureImport,
  memory: measureMemory,
  workers: measureWorkers,
  growth: measureGrowth,
};
