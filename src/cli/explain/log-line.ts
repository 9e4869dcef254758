import { type CheckRecord, checks } from '../../core/checks.ts';
import type { Reason } from '../../core/failures.ts';
import { parseJsonObject } from '../../core/jose/json.ts';
import { showText, showValue } from '../../core/shown-text.ts';
import { findCauses, nameCauses } from '../../explain/causes/causes.ts';
import { type Explanation, explainReason, listCausalFacts } from '../../explain/explanation.ts';
import type { Facts, SettingLabels } from '../../explain/facts.ts';
import type { LogLineInput } from '../../explain/input/input.ts';
import { readTerminalFields } from '../../explain/input/terminal-line.ts';
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
  const causes = facts === undefined ? [] : nameCauses(findCauses(reason, facts));
  const why = listCausalFacts(fields);
  const shown = {
    ...(expected !== undefined && { expected: showValue(expected) }),
    ...(received !== undefined && { seen: showValue(received) }),
    ...(why !== '' && { why }),
    ...(causes.length > 0 && { causes }),
  };
  const sent = fields['reason'] !== undefined && typeof status === 'number' ? status : undefined;
  const at = typeof time === 'string' ? showText(time, 40) : '';
  return explainReason(reason, at, { id: 'log', group: 'log line', ...shown }, sent);
}

/** Labels for the service of a log line. The line of a gate with rules names its rule. */
export function labelLogLine(
  { fields }: LogLineInput,
  { values, rest: args }: Flags<'explain'>,
  environment: NodeJS.ProcessEnv,
): SettingLabels {
  const read = readSettings({ args, environment });
  const { settings, effective } =
    read.kind === 'settings' ? read : { settings: { variant: variants.a }, effective: [] };
  return fields['rule'] === undefined
    ? labelSettings(settings, effective)
    : labelRules(values.rules ?? 'the rules', settings);
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
  if (value === undefined || received === undefined || received === 'absent') return undefined;
  const expected = [parse(fields['expected'])].flat().filter((each): each is string => typeof each === 'string');
  const of = (...reasons: readonly Reason[]): readonly string[] => (reasons.includes(reason) ? expected : []);
  const isUrl = reason === 'proof_url_mismatch';
  return {
    seen: {
      ...{ kind: 'log-line', authorization: null, token: '', url: undefined, cookie: null, otherHeaders: [] },
      ...{ header: {}, claims: {}, proofClaims: {} },
      [value.in]: { [value.name]: value.as === 'time' ? readTime(received) : joinScopes(received, value.name) },
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
    // A line from a terminal has only the time of the day.
    now: readTime(fields['time']) ?? Date.now() / 1000,
  };
}

function joinScopes(received: unknown, claim: string): unknown {
  return claim === 'scope' && Array.isArray(received) ? received.join(' ') : received;
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

/** The hint has the pinned URL after the name of the setting. */
function readPinned(hint: unknown): string | undefined {
  return /^\w+ is (https?:\/\/\S+)$/.exec(typeof hint === 'string' ? hint : '')?.[1];
}
