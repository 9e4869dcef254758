import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { requireProgram } from './programs.ts';

/** A browser with a profile of its own, which is gone with it. */
export interface TestBrowser {
  readonly context: BrowserContext;
  close(): Promise<void>;
}

// It calls nobody by itself, and needs no display.
const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'].concat([
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]);

/** Starts Chromium with a fresh profile. For tests that are skipped without it: `needs('chromium')`. */
export async function startChromium(): Promise<TestBrowser> {
  const profile = await mkdtemp(join(tmpdir(), 'portcullis-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: requireProgram('chromium'),
    args,
    headless: true,
  });
  return {
    context,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}
