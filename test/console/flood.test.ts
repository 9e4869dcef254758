import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { createConsole } from '../../src/console/server/console.ts';
import { watchDecisions } from '../../src/console/server/decision-watch.ts';
import { createDecisions, type Decisions } from '../../src/console/server/decisions.ts';
import { openConsoleKey } from '../../src/console/server/entrance.ts';
import { createEventStreams } from '../../src/console/server/event-stream.ts';
import { AccessError } from '../../src/core/failures.ts';
import { optionLabels } from '../../src/explain/facts.ts';
import type { ConsoleState, StreamedDecisions } from '../../src/server/console/wire.ts';
import { Exchange, noteRefusal } from '../../src/server/http/exchange.ts';
import { nameSettings } from '../../src/server/settings/setting-names.ts';
import { variants } from '../../src/server/variants/variants.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { openPage, startBrowser } from '../support/browser.ts';
import { makeKeyFolder } from '../support/console-client.ts';
import { needs } from '../support/programs.ts';

const names = nameSettings({ variant: variants.a });

function exchangeOf(kind: 'refused' | 'allowed'): Exchange {
  const exchange = new Exchange({ method: 'GET', url: 'http://localhost/', headers: { get: () => null } }, {});
  if (kind === 'refused') noteRefusal(exchange, new AccessError('expired'), names);
  return exchange;
}

/** Watches with a walk that explains nothing, so that only decisions are counted. */
function watch(decisions: Decisions) {
  return watchDecisions(decisions)({ findAuthorizer: () => undefined, labels: optionLabels, domainHasScheme: false });
}

describe('10,000 decisions in a second', () => {
  it('few are streamed, the refused ones among them, and the others are counted', async () => {
    vi.useFakeTimers();
    try {
      const batches: StreamedDecisions[] = [];
      const decisions = createDecisions(names);
      decisions.events.on('decisions', (batch) => batches.push(batch));
      const note = watch(decisions);
      for (let tenth = 0; tenth < 10; tenth++) {
        for (let i = 0; i < 1000; i++) note(exchangeOf(i % 500 === 499 ? 'refused' : 'allowed'), 200, 1);
        await vi.advanceTimersByTimeAsync(100);
      }
      expect(batches.reduce((sum, each) => sum + each.decisions.length + each.dropped, 0)).toBe(10_000);
      expect(batches.length).toBe(10);
      for (const batch of batches) {
        expect(batch.decisions.length).toBeLessThanOrEqual(60);
        expect(batch.decisions.filter(({ reason }) => reason === 'expired').length).toBe(2);
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it('the last 200 refused ones and 100 others are kept, in their order', async () => {
    const decisions = createDecisions(names);
    const at = '2026-11-22T10:00:00.000Z';
    const decide = (id: string, reason?: string) => ({
      ...({ id, at, method: 'GET', route: '/', routeKind: 'route', status: 200, ms: 1 } as const),
      outcome: reason === undefined ? ('allowed' as const) : ('refused' as const),
      ...(reason !== undefined && { reason }),
    });
    for (let i = 0; i < 5000; i++) {
      decisions.keep(decide(`r${i}`, 'expired'), Promise.resolve({ facts: [['received', `${i}`]] }));
      decisions.keep(decide(`a${i}`), undefined);
    }
    expect(decisions.recent()).toEqual([]);
    await once(decisions.events, 'decisions');
    const ids = decisions.recent().map(({ id }) => id);
    expect([ids.length, ids[0], ids.at(-2), ids.at(-1)]).toEqual([300, 'r4800', 'r4999', 'a4999']);
    expect(await decisions.find('r4999')).toMatchObject({ walked: true, facts: [['received', '4999']] });
    expect(await decisions.find('r4800')).toBeDefined();
    expect(await decisions.find('a4900')).toMatchObject({ walked: false, facts: [] });
    expect(await Promise.all([decisions.find('r4799'), decisions.find('a4899')])).toEqual([undefined, undefined]);
    for (let i = 0; i < 100; i++) decisions.note({ at: '', level: 'info', event: `e${i}`, text: '' });
    expect(decisions.notes().map(({ event }) => event)).toEqual(Array.from({ length: 30 }, (_, i) => `e${70 + i}`));
  });

  it('decision that is awaited → found when its checks arrive', async () => {
    const decisions = createDecisions(names);
    const found = decisions.find('late');
    const outcome = { status: 200, outcome: 'allowed', ms: 1 } as const;
    decisions.keep(
      { id: 'late', at: '', method: 'GET', route: '/', routeKind: 'route', ...outcome },
      Promise.resolve({ facts: [] }),
    );
    expect(await found).toMatchObject({ walked: true });
  });

  it('checks that cannot be evaluated → kept without them, and so is the next decision', async () => {
    const decisions = createDecisions(names);
    const options = { labels: optionLabels, domainHasScheme: false };
    const findAuthorizer = () => {
      throw new Error('no rules');
    };
    const note = watchDecisions(decisions)({ ...options, findAuthorizer });
    for (let count = 0; count < 2; count++) {
      const exchange = exchangeOf('refused');
      note(exchange, 401, 1);
      expect(await decisions.find(exchange.id)).toMatchObject({ walked: true, facts: [], decision: { status: 401 } });
    }
  });

  it('page that reads nothing → gets nothing more, then the number of missed decisions', () => {
    const decisions = createDecisions(names);
    const page = { writableLength: 0, text: '', listeners: [] as (() => void)[] };
    const outgoing = {
      get writableLength() {
        return page.writableLength;
      },
      writeHead: () => {},
      write: (text: string) => {
        page.text += text;
      },
      once: (_: string, listener: () => void) => page.listeners.push(listener),
    };
    createEventStreams(decisions)(outgoing as unknown as ServerResponse, [], () => true); // the four members that are used
    page.writableLength = 300 * 1024;
    const before = page.text;
    for (let i = 0; i < 1000; i++) decisions.events.emit('decisions', { decisions: [], dropped: 10 });
    expect(page.text).toBe(before);
    page.writableLength = 0;
    decisions.events.emit('decisions', { decisions: [], dropped: 1 });
    expect(page.text.slice(before.length)).toBe('event: decisions\ndata: {"decisions":[],"dropped":10001}\n\n');
    for (const listener of page.listeners) listener();
    decisions.events.emit('decisions', { decisions: [], dropped: 1 });
    expect(page.text).not.toContain('"dropped":1}');
  });

  it('cookie that ends → the stream ends at the next heartbeat', async () => {
    vi.useFakeTimers();
    try {
      const outgoing = { writableLength: 1, writeHead: () => {}, write: () => {}, once: () => {}, end: vi.fn() };
      let isAllowed = true;
      createEventStreams(createDecisions(names))(outgoing as unknown as ServerResponse, [], () => isAllowed); // the members that are used
      await vi.advanceTimersByTimeAsync(10_000);
      expect(outgoing.end).not.toHaveBeenCalled();
      isAllowed = false;
      await vi.advanceTimersByTimeAsync(10_000);
      expect(outgoing.end).toHaveBeenCalled();
    } finally {
      vi.useRealTimers();
    }
  });

  describe('in a browser', needs('chromium'), () => {
    it('flood → recent decisions, refused ones included, and the number of missing ones', async () => {
      const folder = await makeKeyFolder();
      const key = await openConsoleKey(folder.file);
      const decisions = createDecisions(names);
      const state = (): ConsoleState => ({
        ...{ command: 'serve', version: '0', ready: true, checks: {}, settings: [], routes: [] },
        ...{ keyFile: folder.file, keys: [], notes: [] },
      });
      const paste = () => Promise.resolve({ problem: 'not offered' });
      const server = createServer(createConsole({ decisions, key, state, paste, runTry: undefined }));
      const port = await listen(server);
      const browser = await startBrowser();
      try {
        const link = `http://127.0.0.1:${port}/console?key=${await folder.readKey()}`;
        const { page, problems } = await openPage(browser, link);
        await page.getByText('No requests yet').waitFor();
        const note = watch(decisions);
        for (let part = 0; part < 20; part++) {
          for (let i = 0; i < 500; i++) note(exchangeOf(i % 500 === 499 ? 'refused' : 'allowed'), 200, 1);
          await sleep(50);
        }
        await page.getByText(/^9,[0-9]{3} decisions are missing/).waitFor();
        expect(await page.locator('.list ol > li').count()).toBeLessThanOrEqual(300);
        await page.getByRole('radio', { name: 'Refused' }).check();
        await expect.poll(() => page.locator('.list ol > li').count()).toBe(20);
        await page.getByRole('link', { name: 'expired' }).first().click();
        await page.getByText('Response to the client').waitFor();
        expect(problems).toEqual([]);
      } finally {
        await browser.close();
        await stop(server);
        await key.close();
        await folder.close();
      }
    });
  });
});
