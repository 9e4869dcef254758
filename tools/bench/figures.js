// Figures of the service alone.
import { measureGrowth } from './figures/growth.js';
import { measureImport } from './figures/import.js';
import { measureMemory } from './figures/memory.js';
import { measureStart } from './figures/start.js';

export const figures = { start: measureStart, import: measureImport, memory: measureMemory, growth: measureGrowth };
