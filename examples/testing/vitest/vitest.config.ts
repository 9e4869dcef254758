import { defineConfig } from 'vitest/config';

// Of its own: else the one of the repository around it would be found.
export default defineConfig({ cacheDir: '../../../node_modules/.vite/examples' });
