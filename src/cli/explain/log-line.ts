import { attempt } from '../../core/attempt.ts';
import { type CheckRecord, checks } from '../../core/checks.ts';
import type { Reason } from '../../core/failures.ts';
import { parseJsonObject } from '../../core/jose/json.ts';
import { showText, showValue } from '../../core/shown-text.ts';
import { findCauses, nameCauses } from '../../explain/causes/causes.ts';
import { type Explanation, explainReason, listCausalFacts } from '../../explain/explanation.ts';
import { type Facts, optionLabels, type SettingLabels } from '../../explain/facts.ts';
import type { LogLineInput } from '../../explain/input/input.ts';
import { readTerminalFields } from '../../explain/input/log-lines.ts';
import { labelSettings } from '../../server/settings/setting-names.ts';
import { readSettings } from '../../server/settings/settings.ts';
import { variants } from '../../server/variants/variants.ts';
import type { Flags } from '../commands/flags.ts';
import { labelRules } from './labels.ts';
import { isReason } from './reason-page.ts';

/** Explains a log line by its reason and facts; it has no token. `undefined` for a line without a known reason. */
export function explainLogLine({ fields }: LogLineInput, labels: SettingLabels): Explanation | undefined {
  const { time, expected, received, status } = fields;
  // A rule in report mode refuses no request.
  const reason = fields['reason'] ?? fields['would_refuse'];
  if (typeof reason !== 'string' || !isReason(reason)) return undefined;
  const facts = readLogFacts(reason, fields, labels);
  const found = facts === undefined ? [] : nameCauses(findCauses(reason, facts));
  const show = (value: unknown) => (value === undefined ? undefined : showValue(value));
  const causes = found.length === 0 ? undefined : found;
  const shown = { expected: show(expected), seen: show(received), why: listCausalFacts(fields), causes };
  const sent = fields['reason'] !== undefined && typeof status === 'number' ? status : undefined;
  const at = typeof time === 'string' ? showText(time, 40) : '';
  return explainReason(reason, at, { id: 'log', group: 'log line', ...shown }, sent);
}

/** Labels for the service of a log line. The line of a gate with rules names its rule. */
export function labelLogLine({ fields }: LogLineInput, flags: Flags<'explain'>, environment: NodeJS.ProcessEnv) {
  // Lines and events of the library.
  if (fields['event'] === undefined && fields['time'] === undefined && fields['id'] === undefined) return optionLabels;
  const read = readSettings({ args: flags.rest, environment });
  const { settings, effective } =
    read.kind === 'settings' ? read : { settings: { variant: variants.a }, effective: [] };
  return fields['rule'] === undefined
    ? labelSettings(settings, effective)
    : labelRules(flags.values.rules ?? 'the rules', settings);
}

/** The last line of a log with this id, or with this id of the caller; a prefix before the JSON is ignored. */
export function findLogLine(text: string, id: string): LogLineInput | undefined {
  const fields = text
    .split('\n')
    .map(readFields)
    .findLast((each) => each?.['id'] === id || each?.['request_id'] === id);
  return fields === undefined ? undefined : { kind: 'log-line', fields };
}

function readFields(line: string): LogLineInput['fields'] | undefined {
  return parseJsonObject(Buffer.from(line.slice(Math.max(0, line.indexOf('{'))).trim())) ?? readTerminalFields(line);
}

function readLogFacts(reason: Reason, fields: LogLineInput['fields'], labels: SettingLabels): Facts | undefined {
  const received = parse(fields['received']);
  // The first check that refuses with the reason because of one value, which a log line has as `received`.
  const { value } =
    Object.values<CheckRecord>(checks).find((each) => each.value !== undefined && each.reasons.includes(reason)) ?? {};
  const isHeld = reason === 'missing_permission';
  if ((value === undefined && !isHeld) || received === undefined || (received === 'absent' && !isHeld))
    return undefined;
  const expected = [parse(fields['expected'])].flat().filter((each): each is string => typeof each === 'string');
  const of = (...reasons: readonly Reason[]): readonly string[] => (reasons.includes(reason) ? expected : []);
  const isUrl = reason === 'proof_url_mismatch';
  return {
    seen: {
      ...{ kind: 'log-line', authorization: null, token: '', url: '', cookie: null, otherHeaders: [] },
      ...{ header: {}, claims: {}, proofClaims: {}, preflightOrigin: null },
      ...(value && {
        [value.in]: { [value.name]: value.as === 'time' ? readTime(received) : joinScopes(received, value.name) },
      }),
    },
    force: {
      issuers: of('invalid_issuer'),
      audiences: of('invalid_audience'),
      algorithms: of('unsupported_alg'),
      scopes: of('insufficient_scope'),
      permissions: of('missing_permission'),
      mode: 'allowed',
      domainHasScheme: false,
      labels,
    },
    held: isHeld && !/absent/.test(String(received)) ? [received].flat() : undefined,
    externalUrl: isUrl ? expected[0] : undefined,
    pinnedUrl: isUrl ? readPinned(fields['hint']) : undefined,
    now: readTime(fields['time']) ?? readNow(received) ?? Date.now() / 1000,
  };
}

function joinScopes(received: unknown, claim: string): unknown {
  return claim === 'scope' && Array.isArray(received) ? received.join(' ') : received;
}

/** A terminal line has arrays as JSON. */
function parse(value: unknown): unknown {
  return typeof value === 'string' && value.startsWith('[') ? (attempt(JSON.parse, value) ?? value) : value;
}

/** Seconds since the epoch, of a time of the log, which its distance follows. */
function readTime(value: unknown): number | undefined {
  const seconds = Date.parse(String(value).replace(/ .*$/, '')) / 1000;
  return Number.isNaN(seconds) ? undefined : seconds;
}

/** The time at which a value was compared, by its distance: a line of a terminal or of the library has no date. */
function readNow(received: unknown): number | undefined {
  const [, distance = '', side] = / \(([\d.]+) s (ago|ahead)\)$/.exec(String(received)) ?? [];
  const seconds = side && readTime(received);
  return seconds === undefined || seconds === '' ? undefined : seconds + (side === 'ago' ? 1 : -1) * Number(distance);
}

/** The hint has the pinned URL after the name of the setting. */
function readPinned(hint: unknown): string | undefined {
  return /^\w+ is (https?:\/\/\S+)$/.exec(typeof hint === 'string' ? hint : '')?.[1];
}
