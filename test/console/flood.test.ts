import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { createConsole } from '../../src/console/server/console.ts';
import { openDecisionWatch } from '../../src/console/server/decision-watch.ts';
import { openConsoleKey } from '../../src/console/server/entrance.ts';
import { createEventStreams } from '../../src/console/server/event-stream.ts';
import { createHub } from '../../src/console/server/hub.ts';
import { AccessError } from '../../src/core/failures.ts';
import { optionLabels } from '../../src/explain/facts.ts';
import type { ConsoleState, DecisionBatch } from '../../src/server/console/wire.ts';
import { Exchange, noteRefusal } from '../../src/server/http/exchange.ts';
import { nameSettings } from '../../src/server/settings/setting-names.ts';
import { variants } from '../../src/server/variants/variants.ts';
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
function open(take: (batch: DecisionBatch) => void) {
  return openDecisionWatch(take)({ findAuthorizer: () => undefined, labels: optionLabels, domainHasScheme: false });
}

const countAll = (batches: readonly DecisionBatch[]): number =>
  batches.reduce((sum, { decisions, dropped }) => sum + decisions.length + dropped, 0);

describe('10,000 decisions in a second', () => {
  it('few are streamed, the refused ones among them, and the others are counted', async () => {
    vi.useFakeTimers();
    try {
      const batches: DecisionBatch[] = [];
      const watch = open((batch) => void batches.push(batch));
      for (let tenth = 0; tenth < 10; tenth++) {
        for (let i = 0; i < 1000; i++) watch(exchangeOf(i % 500 === 499 ? 'refused' : 'allowed'), 200, 1);
        await vi.advanceTimersByTimeAsync(100);
      }
      expect(countAll(batches)).toBe(10_000);
      expect(batches.length).toBe(10);
      for (const { decisions } of batches) {
        expect(decisions.length).toBeLessThanOrEqual(60);
        expect(decisions.filter(({ reason }) => reason === 'expired').length).toBe(2);
      }
      expect(Math.max(...batches.map(({ facts }) => facts.length))).toBeLessThanOrEqual(60);
    } finally {
      vi.useRealTimers();
    }
  });

  it('the hub keeps the last 200 refused ones and 100 others', () => {
    const hub = createHub(names);
    const decide = (id: string, reason?: string) => ({
      ...({
        id,
        at: '2026-11-22T10:00:00.000Z',
        method: 'GET',
        route: '/',
        routeKind: 'route',
        status: 200,
        ms: 1,
      } as const),
      outcome: reason === undefined ? ('allowed' as const) : ('refused' as const),
      ...(reason !== undefined && { reason }),
    });
    for (let i = 0; i < 5000; i++) {
      hub.take({
        decisions: [decide(`r${i}`, 'expired'), decide(`a${i}`)],
        facts: [{ id: `r${i}`, facts: [] }],
        dropped: 0,
      });
    }
    expect(hub.recent().length).toBe(300);
    expect(hub.find('r4999')).toBeDefined();
    expect(hub.find('r4800')).toBeDefined();
    expect(hub.find('r4799')).toBeUndefined();
    expect(hub.find('a4899')).toBeUndefined();
    for (let i = 0; i < 100; i++) hub.note({ at: '', level: 'info', event: `e${i}`, text: '' });
    expect(hub.notes().map(({ event }) => event)).toEqual(Array.from({ length: 30 }, (_, i) => `e${70 + i}`));
  });

  it('page that reads nothing → gets nothing more, then the number of missed decisions', () => {
    const hub = createHub(names);
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
    createEventStreams(hub)(outgoing as unknown as ServerResponse, [], () => true); // the four members that are used
    page.writableLength = 300 * 1024;
    const before = page.text;
    for (let i = 0; i < 1000; i++) hub.take({ decisions: [], facts: [], dropped: 10 });
    expect(page.text).toBe(before);
    page.writableLength = 0;
    hub.take({ decisions: [], facts: [], dropped: 1 });
    expect(page.text.slice(before.length)).toBe('event: decisions\ndata: {"decisions":[],"dropped":10001}\n\n');
    for (const listener of page.listeners) listener();
    hub.take({ decisions: [], facts: [], dropped: 1 });
    expect(page.text).not.toContain('"dropped":1}');
  });

  describe('in a browser', needs('chromium'), () => {
    it('flood → recent decisions, refused ones included, and the number of missing ones', async () => {
      const folder = await makeKeyFolder();
      const key = await openConsoleKey(folder.file, () => {});
      const hub = createHub(names);
      const state = (): ConsoleState => ({
        ...{ command: 'serve', version: '0', ready: true, checks: {}, settings: [], routes: [] },
        ...{ keyFile: folder.file, keys: [], notes: [], tries: false },
      });
      const tries = { isOffered: () => false, run: () => Promise.reject(new Error('not offered')) };
      const server = createServer(
        createConsole({ hub, key, state, tries, paste: () => Promise.resolve({ problem: 'not offered' }) }),
      );
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as AddressInfo; // it listens on TCP
      const browser = await startBrowser();
      try {
        const link = `http://127.0.0.1:${port}/console?key=${await folder.readKey()}`;
        const { page, problems } = await openPage(browser, link);
        await page.getByText('No requests yet').waitFor();
        const watch = open(hub.take);
        for (let tenth = 0; tenth < 10; tenth++) {
          for (let i = 0; i < 1000; i++) watch(exchangeOf(i % 500 === 499 ? 'refused' : 'allowed'), 200, 1);
          await sleep(100);
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
        server.closeAllConnections();
        server.close();
        await key.close();
        await folder.close();
      }
    });
  });
});
