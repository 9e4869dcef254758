// Figures of the service alone, beside the comparison.
import { measureGrowth } from './figures/growth.js';
import { measureMemory } from './figures/memory.js';
import { measureStart } from './figures/start.js';
import { measureWorkers } from './figures/workers.js';

export const figures = { start: measureStart, memory: measureMemory, workers: measureWorkers, growth: measureGrowth };
