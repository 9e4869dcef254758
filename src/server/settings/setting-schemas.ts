import * as v from 'valibot';
import { isRedisUrl } from '../../dpop/redis-url.ts';
import { parseBaseUrl } from '../../http/external-url.ts';
import { parseTrust } from '../../http/trust.ts';
import { isDomain } from '../../resource-server/issuer-name.ts';

const booleans: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  [true, true],
  [false, false],
]);

function parseBoolean(value: unknown): boolean | undefined {
  return booleans.get(typeof value === 'string' ? value.toLowerCase() : value);
}

export const boolean = v.pipe(
  v.unknown(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const parsed = parseBoolean(dataset.value);
    if (parsed !== undefined) return parsed;
    addIssue();
    return NEVER;
  }),
);

/** A whole number, written as digits or as a JSON number. */
export function integer(least: number, most: number) {
  return v.pipe(
    v.union([v.number(), v.pipe(v.string(), v.regex(/^\d{1,9}$/), v.transform(Number))]),
    v.safeInteger(),
    v.minValue(least),
    v.maxValue(most),
  );
}

/** A part of one, written as a decimal number or as a JSON number. */
export const share = v.pipe(
  v.union([v.number(), v.pipe(v.string(), v.regex(/^(?:[01]|[01]?\.\d{1,6})$/), v.transform(Number))]),
  v.gtValue(0),
  v.maxValue(1),
);

/** A list, comma-separated or as a JSON array. */
const list = v.union([
  v.array(v.string()),
  v.pipe(
    v.string(),
    v.transform((text) =>
      text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
    ),
  ),
]);

export function algorithmList<Name extends string>(allowed: readonly Name[]) {
  return v.pipe(list, v.array(v.picklist(allowed)), v.minLength(1));
}

/** One number for all, or the form in which a variant may have two. */
export const clockTolerance = v.union([
  v.pipe(
    integer(0, 60),
    v.transform((seconds) => ({ exp: seconds, nbf: seconds })),
  ),
  v.pipe(
    v.string(),
    v.regex(/^exp \d{1,2}, nbf \d{1,3}$/),
    v.transform((text) => text.match(/\d+/g)?.map(Number) ?? []),
    v.strictTuple([v.pipe(v.number(), v.maxValue(60)), v.pipe(v.number(), v.maxValue(300))]),
    v.transform(([exp, nbf]) => ({ exp, nbf })),
  ),
]);

/** The domain, or `scheme` for the known user error that the service must survive. */
export const domain = v.pipe(
  v.string(),
  v.rawTransform(({ dataset: { value: text }, addIssue, NEVER }) => {
    if (/^https:\/\//i.test(text)) return { kind: 'scheme', text } as const;
    if (isDomain(text)) return { kind: 'host', text } as const;
    addIssue();
    return NEVER;
  }),
);

/** The issuer in full, as `iss` has it (RFC 8414 §2); empty if the domain names it. */
export const issuerUrl = v.pipe(
  v.string(),
  v.check(
    (text) =>
      text === '' || (/^https:\/\/[^/?#@\\\s\p{Cc}]+(?:\/[^?#\\\s\p{Cc}]*)?$/u.test(text) && URL.canParse(text)),
  ),
);

export const trust = v.pipe(
  v.unknown(),
  v.rawTransform(({ dataset: { value }, addIssue, NEVER }) => {
    const flag = parseBoolean(value);
    if (flag !== undefined) return flag ? ('all' as const) : ('none' as const);
    const entries = v.safeParse(list, value);
    if (entries.success && entries.output.length > 0) {
      try {
        parseTrust(entries.output);
        return entries.output;
      } catch {
        // reported below, with the fix
      }
    }
    addIssue();
    return NEVER;
  }),
);

export const replayStore = v.union([v.picklist(['memory', 'off']), v.pipe(v.string(), v.check(isRedisUrl))]);

/** Without ports; in lower case. */
export const hostNames = v.pipe(
  list,
  v.array(v.pipe(v.string(), v.toLowerCase(), v.regex(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/))),
);

export const externalUrl = v.pipe(
  v.string(),
  v.check((text) => text === '' || parseBaseUrl(text) !== undefined),
);

export const origins = v.pipe(
  list,
  v.array(
    v.pipe(
      v.string(),
      v.check((text) => URL.canParse(text) && new URL(text).origin === text),
    ),
  ),
);

/** Text that has the form of a pattern. */
export function textLike(pattern: RegExp) {
  return v.pipe(v.string(), v.regex(pattern));
}

export const printable = textLike(/^[^\p{Cc}]+$/u);

export const replayNamespace = v.pipe(v.string(), v.regex(/^[\w.-]{1,64}$/));
