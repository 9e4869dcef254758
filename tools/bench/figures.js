// Figures of the service alone.
import { measureImport } from './figures/import.js';
import { measureMemory } from './figures/memory.js';
import { measureStart } from './figures/start.js';

export const figures = { start: measureStart, import: measureImport, memory: measureMemory };
