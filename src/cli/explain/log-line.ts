import { type CheckedValue, checks } from '../../checks.ts';
import { findCauses, nameCauses } from '../../explain/causes/causes.ts';
import type { Explanation } from '../../explain/explanation.ts';
import { type Facts, optionLabels, type SettingLabels } from '../../explain/facts.ts';
import type { LogLineInput } from '../../explain/input/input.ts';
import { readTerminalFields } from '../../explain/input/terminal-line.ts';
import { failures, type Reason } from '../../failures.ts';
import { parseJsonObject } from '../../jose/json.ts';
import { showText, showValue } from '../../shown-text.ts';
import { isReason } from './reason-page.ts';

/** Explains a log line by its reason and facts; it has no token. */
export function explainLogLine({ fields }: LogLineInput, labels: SettingLabels): Explanation | undefined {
  const { time, expected, received, status } = fields;
  // A rule in report mode refuses no request.
  const reason = fields['reason'] ?? fields['would_refuse'];
  if (typeof reason !== 'string' || !isReason(reason)) return undefined;
  const facts = readLogFacts(reason, fields, labels);
  const causes = facts === undefined ? [] : nameCauses(findCauses(reason, facts));
  return {
    version: 1,
    verdict: 'refused',
    reason,
    status: fields['reason'] !== undefined && typeof status === 'number' ? status : failures[reason].status,
    at: typeof time === 'string' ? showText(time, 40) : '',
    against: { issuer: [], audiences: [], keys: 'none' },
    checks: [
      {
        id: 'log',
        group: 'log line',
        verdict: 'fail',
        reason,
        ...(expected !== undefined && { expected: showValue(expected) }),
        ...(received !== undefined && { seen: showValue(received) }),
        ...(causes.length > 0 ? { causes } : { fix: failures[reason].fix }),
        docs: `refusals.md#${reason}`,
      },
    ],
  };
}

/** The last line of a log with this id, or with this id of the caller; a prefix before the JSON is ignored. */
export function findLogLine(text: string, id: string): LogLineInput | undefined {
  const line = text.split('\n').findLast((each) => {
    const fields = readFields(each);
    return fields?.['id'] === id || fields?.['request_id'] === id;
  });
  const fields = line === undefined ? undefined : readFields(line);
  return fields === undefined ? undefined : { kind: 'log-line', fields };
}

function readFields(line: string): LogLineInput['fields'] | undefined {
  return parseJsonObject(Buffer.from(line.slice(Math.max(0, line.indexOf('{'))).trim())) ?? readTerminalFields(line);
}

type Fields = Readonly<Record<string, unknown>>;

/** The first check that refuses with a reason because of one value, which a log line has as `received`. */
function findValue(reason: Reason): CheckedValue | undefined {
  return Object.values(checks).find(({ reasons, value }) => value !== undefined && reasons.includes(reason))?.value;
}

function readReceived(received: unknown, { name, as }: CheckedValue): unknown {
  if (as === 'time') return readTime(received);
  return name === 'scope' && Array.isArray(received) ? received.join(' ') : received;
}

export function readLogFacts(reason: Reason, fields: Fields, labels: SettingLabels = optionLabels): Facts | undefined {
  const received = parse(fields['received']);
  const value = findValue(reason);
  if (value === undefined || received === undefined || received === 'absent') return undefined;
  const expected = [parse(fields['expected'])].flat().filter((each): each is string => typeof each === 'string');
  const of = (...reasons: readonly Reason[]): readonly string[] => (reasons.includes(reason) ? expected : []);
  const isUrl = reason === 'proof_url_mismatch';
  return {
    seen: {
      ...{ kind: 'log-line', authorization: null, token: '', url: undefined, cookie: null, otherHeaders: [] },
      ...{ header: {}, claims: {}, proofClaims: {} },
      [value.in]: { [value.name]: readReceived(received, value) },
    },
    force: {
      issuers: of('invalid_issuer'),
      audiences: of('invalid_audience'),
      algorithms: of('unsupported_alg'),
      scopes: of('insufficient_scope'),
      permissions: [],
      mode: 'allowed',
      domainHasScheme: false,
      labels,
    },
    externalUrl: isUrl ? expected[0] : undefined,
    pinnedUrl: isUrl ? readPinned(fields['hint']) : undefined,
    now: readNow(fields['time']),
  };
}

/** A terminal line has arrays as JSON. */
function parse(value: unknown): unknown {
  if (typeof value !== 'string' || !value.startsWith('[')) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** Seconds since the epoch, of a time of the log, which its distance follows. */
function readTime(value: unknown): number | undefined {
  const seconds = Date.parse(String(value).replace(/ .*$/, '')) / 1000;
  return Number.isNaN(seconds) ? undefined : seconds;
}

/** A line from a terminal has only the time of the day. */
function readNow(time: unknown): number {
  const seconds = Date.parse(String(time)) / 1000;
  return Number.isNaN(seconds) ? Date.now() / 1000 : seconds;
}

/** The hint has the pinned URL after the name of the setting. */
function readPinned(hint: unknown): string | undefined {
  return /^\w+ is (https?:\/\/\S+)$/.exec(typeof hint === 'string' ? hint : '')?.[1];
}
