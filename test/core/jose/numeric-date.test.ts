import { expect, it } from 'vitest';
import { isTime } from '../../../src/core/jose/json.ts';

it.each([0, 0.5, 1_800_000_000, 1e11])('%d → a time', (value) => expect(isTime(value)).toBe(true));

it.each([-1, 1e11 + 1, 1_800_000_000_000, Number.POSITIVE_INFINITY, Number.NaN, '1800000000', null, undefined])(
  '%j → none',
  (value) => expect(isTime(value)).toBe(false),
);
