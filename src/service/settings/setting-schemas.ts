import { z } from 'zod';
import { parseTrust } from '../../http/trust.ts';
import { isDomain } from '../../resource-server/issuer-name.ts';

const booleans: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  [true, true],
  [false, false],
]);

export const boolean = z.unknown().transform((value, context) => {
  const parsed = booleans.get(typeof value === 'string' ? value.toLowerCase() : value);
  if (parsed === undefined) context.addIssue('not a boolean');
  return parsed ?? false;
});

/** A whole number, written as digits or as a JSON number. */
export function integer(least: number, most: number) {
  return z
    .union([
      z.int(),
      z
        .string()
        .regex(/^\d{1,9}$/)
        .transform(Number),
    ])
    .pipe(z.int().min(least).max(most));
}

/** A list, comma-separated or as a JSON array. */
const list = z.union([
  z.array(z.string()),
  z.string().transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  ),
]);

export function algorithmList(allowed: readonly string[]) {
  return list.pipe(z.array(z.enum(allowed)).min(1));
}

/** One number for all, or the form in which a variant may have two. */
export const clockTolerance = z.union([
  integer(0, 60).transform((seconds) => ({ exp: seconds, nbf: seconds })),
  z
    .string()
    .regex(/^exp \d{1,2}, nbf \d{1,3}$/)
    .transform((text) => text.match(/\d+/g)?.map(Number) ?? [])
    .pipe(z.tuple([z.int().max(60), z.int().max(300)]))
    .transform(([exp, nbf]) => ({ exp, nbf })),
]);

/** The domain, or `scheme` for the known user error that the service must survive. */
export const domain = z.string().transform((text, context) => {
  if (/^https:\/\//i.test(text)) return { kind: 'scheme', text } as const;
  if (!isDomain(text)) context.addIssue('not a host');
  return { kind: 'host', text } as const;
});

export const trust = z.unknown().transform((value, context) => {
  const flag = booleans.get(typeof value === 'string' ? value.toLowerCase() : value);
  if (flag !== undefined) return flag ? ('all' as const) : ('none' as const);
  const entries = list.safeParse(value);
  if (entries.success && entries.data.length > 0) {
    try {
      parseTrust(entries.data);
      return entries.data;
    } catch {
      // reported below, with the fix
    }
  }
  context.addIssue('not addresses');
  return 'none' as const;
});

export const replayStore = z.union([
  z.enum(['memory', 'off']),
  z.string().refine((text) => /^rediss?:\/\//.test(text) && URL.canParse(text)),
]);

export const origins = list.pipe(
  z.array(z.string().refine((text) => URL.canParse(text) && new URL(text).origin === text)),
);

export const printable = z.string().regex(/^[^\p{Cc}]+$/u);
