import { expect, it } from 'vitest';
import { readSentPath } from '../../../src/core/http/request.ts';

const token = `eyJhbGciOiJSUzI1NiJ9.${'a'.repeat(20)}.b`;

it.each([
  [{ url: 'https://api.test/a/b?c#d' }, '/a/b'],
  [{ url: 'https://api.test/x', target: '/a%2Fb?c' }, '/a%2Fb'],
  [{ url: `https://api.test/reset/${token}/now` }, '/reset/***/now'],
  [{ url: 'https://api.test/eyJ' }, '/eyJ'],
])('%j → %s', (request, path) =>
  expect(readSentPath({ method: 'GET', headers: new Headers(), ...request })).toBe(path),
);
