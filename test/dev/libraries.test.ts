import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LocalIdpFailure } from '../../src/dev/provider/failure.ts';
import { describeRuntime, loadLibraries, loadOptional, muteNotices } from '../../src/dev/provider/libraries.ts';

describe('loadOptional', () => {
  test('package that is not installed → says what to install', async () => {
    const missing = Object.assign(new Error('not found'), { code: 'ERR_MODULE_NOT_FOUND' });
    const loading = loadOptional(() => Promise.reject(missing));
    await expect(loading).rejects.toThrow(LocalIdpFailure);
    await expect(loading).rejects.toThrow('npm install --save-dev oidc-provider@9 @peculiar/x509@2');
  });

  test.each([new TypeError('broken package'), undefined])('other error (%s) → unchanged', (error) =>
    expect(loadOptional(() => Promise.reject(error))).rejects.toBe(error),
  );
});

test('loadLibraries: loaded once, without changes to Reflect or the console', async () => {
  const target: Pick<Console, 'info' | 'warn'> = console;
  const before = [target.info, target.warn, Reflect.ownKeys(Reflect)];
  const first = loadLibraries();
  expect(loadLibraries()).toBe(first);
  await first;
  expect([target.info, target.warn, Reflect.ownKeys(Reflect)]).toEqual(before);
});

describe('muteNotices', () => {
  const target: Pick<Console, 'info' | 'warn'> = console;
  const { info, warn } = target;
  let written: unknown[][];

  beforeEach(() => {
    written = [];
    target.info = target.warn = (...parts: unknown[]) => void written.push(parts);
  });
  afterEach(() => Object.assign(target, { info, warn }));

  test.each(['info', 'warn'] as const)('console.%s → notices are dropped, all else is written', (method) => {
    const unmute = muteNotices();
    target[method]('oidc-provider WARNING: a notice');
    target[method]('\x1b[31;1moidc-provider NOTICE: a notice in colour\x1b[0m');
    target[method]('another', { message: 1 });
    unmute();
    target[method]('oidc-provider WARNING: afterwards');
    expect(written).toEqual([['another', { message: 1 }], ['oidc-provider WARNING: afterwards']]);
  });
});

test.each([
  ['20.19.0', [expect.stringContaining('Node 20.19.0')]],
  ['22.0.0', []],
  ['24.1.2', []],
])('describeRuntime: Node %s → %j', (version, notices) => expect(describeRuntime(version)).toEqual(notices));
