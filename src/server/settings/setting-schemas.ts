import * as v from 'valibot';
import { attempt } from '../../core/attempt.ts';
import { parseRedisUrl } from '../../core/dpop/redis-url.ts';
import { parseBaseUrl, parseTrust } from '../../core/http/external-url.ts';
import { showUrl } from '../../core/http/shown-url.ts';
import { canVerify } from '../../core/jose/jws.ts';
import { isPlainHttps } from '../../core/outbound/https-address.ts';
import { findDocumentPath, isDomain } from '../../core/resource-server/issuers/trusted-issuer.ts';

export const hidden = '***';

export const textThat = (check: (text: string) => boolean) => v.pipe(v.string(), v.check(check));

export const textLike = (pattern: RegExp) => v.pipe(v.string(), v.regex(pattern));

const emptyOr = (check: (text: string) => boolean) => textThat((text) => text === '' || check(text));

/** A string that a parser accepts. */
export const readable = (parse: (text: string) => object) => textThat((text) => attempt(parse, text) !== undefined);

function parsed<T>(parse: (value: unknown) => T | undefined) {
  return v.pipe(
    v.unknown(),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      const value = parse(dataset.value);
      if (value !== undefined) return value;
      addIssue();
      return NEVER;
    }),
  );
}

function parseBoolean(value: unknown): boolean | undefined {
  const written = typeof value === 'string' ? value.toLowerCase() : value;
  if (written === true || written === 'true') return true;
  return written === false || written === 'false' ? false : undefined;
}

export function integer(least: number, most: number) {
  return v.pipe(
    v.union([v.number(), v.pipe(textLike(/^\d{1,9}$/), v.transform(Number))]),
    v.safeInteger(),
    v.minValue(least),
    v.maxValue(most),
  );
}

export function number(least: number, most: number, unit?: 'seconds' | 'milliseconds') {
  const what = unit === undefined ? 'a number' : `a number of ${unit}`;
  return { schema: integer(least, most), fix: `Set ${what} from ${least} to ${most}.` };
}

export function oneOf<Name extends string>(...names: readonly Name[]) {
  const fix = names.length > 2 ? `Set one of: ${names.join(', ')}.` : `Set ${names.join(' or ')}.`;
  return { schema: v.picklist(names), fix };
}

export const flag = { schema: parsed(parseBoolean), fix: 'Set true or false.' };

export const filePath = { schema: textLike(/^\P{Cc}*$/u), defaultValue: '' } as const;

export const secretBytes = {
  secret: 'always',
  schema: emptyOr((text) => Buffer.byteLength(text) >= 32),
  defaultValue: '',
  fix: 'Set at least 32 random bytes, for example the output of: openssl rand -base64 48.',
  redact: (value: string): string => (value === '' ? '' : hidden),
} as const;

/** A part of one, as a decimal number or as a JSON number. */
export const share = v.pipe(
  v.union([v.number(), v.pipe(textLike(/^(?:[01]|[01]?\.\d{1,6})$/), v.transform(Number))]),
  v.gtValue(0),
  v.maxValue(1),
);

/** Comma-separated, or a JSON array. A string of commas is an error: an empty list would turn a feature off silently. */
const list = v.union([
  v.array(v.string()),
  v.pipe(
    textLike(/[^,\s]|^$/),
    v.transform((text) => text.split(',').flatMap((item) => item.trim() || [])),
  ),
]);

export const filePaths = v.pipe(list, v.array(textLike(/^\P{Cc}+$/u)));

export function algorithmList<Name extends string>(allowed: readonly Name[]) {
  return v.pipe(list, v.array(v.pipe(v.picklist(allowed), v.check<Name>(canVerify))), v.minLength(1));
}

/** One number for both, or the form for a variant with two. */
export const clockTolerance = v.union([
  v.pipe(
    integer(0, 60),
    v.transform((seconds) => ({ exp: seconds, nbf: seconds })),
  ),
  v.pipe(
    textLike(/^exp \d{1,2}, nbf \d{1,3}$/),
    v.transform((text) => text.match(/\d+/g)?.map(Number) ?? []),
    v.strictTuple([v.pipe(v.number(), v.maxValue(60)), v.pipe(v.number(), v.maxValue(300))]),
    v.transform(([exp, nbf]) => ({ exp, nbf })),
  ),
]);

/** A host. `scheme` is a known user error, with which the service must start. */
export const domain = parsed((text) => {
  if (typeof text !== 'string') return undefined;
  if (/^https:\/\//i.test(text)) return { kind: 'scheme', text } as const;
  return isDomain(text) ? ({ kind: 'host', text } as const) : undefined;
});

/** The value of `iss` (RFC 8414 §2); empty if the domain gives it. Plain http only with the address of the keys. */
export const issuerUrl = emptyOr((text) => {
  const isUrl = /^https?:\/\/[^/?#@\\\s\p{Cc}]+(?:\/[^?#\\\s\p{Cc}]*)?$/u.test(text) && URL.canParse(text);
  return isUrl && findDocumentPath(text) === undefined;
});

export const keysUrl = emptyOr((text) => !/[\s\p{Cc}]/u.test(text) && isPlainHttps(text));

export const trust = parsed((value) => {
  const all = parseBoolean(value);
  if (all !== undefined) return all ? 'all' : 'none';
  const { success, output } = v.safeParse(list, value);
  return success && output.length > 0 && attempt(parseTrust, output) !== undefined ? output : undefined;
});

/** Secret, default and redaction of a store that instances share. */
export const redisUrl = {
  secret: 'credentials',
  defaultValue: 'memory',
  // Neither a word nor a URL: it may be a password.
  redact: (value: string): string =>
    /^(?:[a-z]{0,10}|rediss?(?:\+[a-z]+)?:\/\/.*)$/is.test(value) ? showUrl(value) : hidden,
} as const;

export const revocationStore = v.union([v.literal('memory'), readable(parseRedisUrl)]);

/** Names, comma-separated or as a JSON array. */
export const names = v.pipe(list, v.array(textLike(/^(?!["'])[\x21-\x7e]{1,256}(?<!["'])$/)));

export const replayStore = v.union([v.picklist(['memory', 'off']), readable(parseRedisUrl)]);

/** Without ports; in lower case. */
export const hostNames = v.pipe(
  list,
  v.array(v.pipe(v.string(), v.toLowerCase(), v.regex(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/))),
);

export const externalUrl = emptyOr((text) => parseBaseUrl(text) !== undefined);

export const origins = v.pipe(list, v.array(textThat((text) => URL.canParse(text) && new URL(text).origin === text)));

/** Text as the provider has it. A file of environment variables may keep quotation marks around a value. */
export const identifier = textLike(/^(?![\s"'“”])[^\p{Cc}]*[^\p{Cc}\s"'“”]$/u);
