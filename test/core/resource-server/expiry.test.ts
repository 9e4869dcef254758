import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { endAtExpiry } from '../../../src/core/resource-server/access.ts';
import { type Access, createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const run = promisify(execFile);
const issuer = createTestIssuer();
const create = (clockTolerance: number) =>
  createResourceServer({ issuers: [issuer], audience: issuer.audience, clockTolerance });
const now = () => Date.now() / 1000;
const request = (exp: number) =>
  new Request('https://api.test/', { headers: issuer.headers({ exp, iat: now() - 60 }) });
const accessUntil = (exp: number, server = create(0)) => server.authorize(request(exp));
const pass = (seconds: number) => vi.advanceTimersByTime(seconds * 1000);

const hour = 3600;
const day = 24 * hour;

describe('endAtExpiry', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_900_000_000_000 });
  });
  afterEach(() => vi.useRealTimers());

  it.each([
    ['a fraction of a second', 0.5],
    ['a minute', 60],
    ['the longest timer', 2 ** 31 / 1000],
    ['25 days', 25 * day],
    ['10 years', 3650 * day],
  ])('exp in %s → close is called at exp, once', async (_name, seconds) => {
    const close = vi.fn();
    const exp = now() + seconds;
    endAtExpiry(await accessUntil(exp), close);
    pass(seconds - 0.002);
    expect(close).not.toHaveBeenCalled();
    pass(0.003);
    expect(close).toHaveBeenCalledOnce();
    pass(2 * day);
    expect(close).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the latest exp → not called within a year', async () => {
    const close = vi.fn();
    const cancel = endAtExpiry(await accessUntil(1e11), close);
    pass(365 * day);
    expect(close).not.toHaveBeenCalled();
    cancel();
  });

  it.each([0, 5, 60])('tolerance of %i s → called when the server begins to refuse the token', async (tolerance) => {
    const server = create(tolerance);
    const sent = request(now() + 10);
    const close = vi.fn();
    endAtExpiry(await server.authorize(sent), close);
    pass(10 + tolerance - 0.001);
    expect(await server.judge(sent)).toHaveProperty('claims');
    expect(close).not.toHaveBeenCalled();
    pass(0.001);
    expect(await server.judge(sent)).toMatchObject({ reason: 'expired' });
    expect(close).toHaveBeenCalledOnce();
  });

  it('a token that has expired since → called in a later event-loop iteration', async () => {
    const access = await accessUntil(now() + 10);
    pass(11);
    const close = vi.fn();
    endAtExpiry(access, close);
    expect(close).not.toHaveBeenCalled();
    pass(0.001);
    expect(close).toHaveBeenCalledOnce();
  });

  it('claims of a schema, without exp → the exp of the token', async () => {
    const policy = { claims: z.object({ sub: z.string() }) };
    const access = await create(0).authorize(request(now() + 10), policy);
    expect(access.claims).toEqual({ sub: 'test-subject' });
    const close = vi.fn();
    endAtExpiry(access, close);
    pass(10);
    expect(close).toHaveBeenCalledOnce();
  });

  it('the clock is set back → called later', async () => {
    const close = vi.fn();
    endAtExpiry(await accessUntil(now() + 60), close);
    vi.setSystemTime(Date.now() - 2 * hour * 1000);
    pass(hour);
    expect(close).not.toHaveBeenCalled();
    pass(hour + 60);
    expect(close).toHaveBeenCalledOnce();
  });

  it('the clock is set forward → called within an hour', async () => {
    const close = vi.fn();
    endAtExpiry(await accessUntil(now() + 30 * day), close);
    vi.setSystemTime(Date.now() + 31 * day * 1000);
    pass(hour);
    expect(close).toHaveBeenCalledOnce();
  });

  it('a custom clock → that clock decides', async () => {
    let seconds = 1_000_000;
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, now: () => seconds });
    const headers = issuer.headers({ iat: seconds, exp: seconds + 60 });
    const close = vi.fn();
    endAtExpiry(await server.authorize(new Request('https://api.test/', { headers })), close, { now: () => seconds });
    pass(64);
    expect(close).not.toHaveBeenCalled();
    seconds += 65;
    pass(65);
    expect(close).toHaveBeenCalledOnce();
  });

  it('cancelled, before and after a wait of an hour → never called, no timer left', async () => {
    const close = vi.fn();
    for (const wait of [0, 2 * hour]) {
      const cancel = endAtExpiry(await accessUntil(now() + day), close);
      pass(wait);
      cancel();
      cancel();
      expect(vi.getTimerCount()).toBe(0);
    }
    pass(2 * day);
    expect(close).not.toHaveBeenCalled();
  });

  it.each([
    () => {
      throw new Error('of close');
    },
    () => Promise.reject(new Error('of close')),
  ])('errors of close are ignored: %s', async (fail) => {
    const close = vi.fn(fail);
    endAtExpiry(await accessUntil(now() + 10), close);
    expect(() => pass(10)).not.toThrow();
    expect(close).toHaveBeenCalledOnce();
  });

  it('a value that is not access of this copy, or no function → TypeError', async () => {
    const access = await accessUntil(now() + 10);
    const close = vi.fn();
    for (const value of [undefined, null, {}, { ...access }, { claims: { exp: now() + 10 } }, Object.create(access)]) {
      expect(() => endAtExpiry(value as Access, close)).toThrow(/^endAtExpiry: pass the access that this copy/);
    }
    expect(() => endAtExpiry(access, undefined as unknown as () => void)).toThrow(/^endAtExpiry: close is a function/);
    // @ts-expect-error
    expect(() => endAtExpiry(access, close, { clock: now })).toThrow(/^endAtExpiry: there is no clock/);
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('a pending expiry does not keep the process alive', async () => {
  const code = `
    import { createResourceServer, endAtExpiry } from 'portcullis';
    import { createTestIssuer } from 'portcullis/testing';
    const issuer = createTestIssuer();
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
    const headers = new Headers(issuer.headers());
    endAtExpiry(await server.authorize({ method: 'GET', url: 'https://api.test/', headers }), () => console.log('closed'));
    console.log('waits');
  `;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', code], { timeout: 20_000 });
  expect(stdout).toBe('waits\n');
});
