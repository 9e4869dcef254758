import { afterAll, expect, vi } from 'vitest';

const events = ['SIGHUP', 'SIGINT', 'SIGTERM', 'uncaughtException', 'unhandledRejection'] as const;
const spied = [Date, Math, JSON, performance, process, process.stdout, process.stderr] as const;
const globals = new Map(Object.entries(Object.getOwnPropertyDescriptors(globalThis)));

/** State of the process that later test files would see. Globals that a library adds may remain. */
function look(): Readonly<Record<string, unknown>> {
  return {
    environment: { ...process.env },
    folder: process.cwd(),
    fakeTimers: vi.isFakeTimers(),
    listeners: events.map((name) => `${name} ${process.listenerCount(name)}`),
    // Node creates some globals on first use: those have no value yet. tslib, of which Nest and the makers of certificates load
    // two versions, writes its functions into the global object.
    replaced: [...globals].filter(
      ([name, { value }]) => value !== undefined && !name.startsWith('__') && Reflect.get(globalThis, name) !== value,
    ),
    spies: spied.flatMap((owner) => Object.entries(Object.getOwnPropertyDescriptors(owner)).filter(isSpy)),
  };
}

function isSpy([, { value }]: readonly [string, PropertyDescriptor]): boolean {
  return vi.isMockFunction(value);
}

const before = look();

// `@hono/node-server` replaces these when it is first used.
const { Request, Response } = globalThis;

// Hooks run in the reverse order, so this one is the last of each file.
afterAll(() => {
  expect(
    look(),
    'This file leaves something behind: restore it, or name the file in support/isolated-files.ts',
  ).toEqual(before);
});
afterAll(() => void Object.assign(globalThis, { Request, Response }));
