import { formatReasonPage } from '../../../src/cli/explain/reason-page.ts';
import { failures, type Reason } from '../../../src/core/failures.ts';
import { ruleMembers } from '../../../src/gate/rules/schema/rule-members.ts';
import { auditMembers } from '../../../src/server/observation/audit/decision.ts';
import { describeSetting, type SettingRow } from '../../../src/server/settings/setting-row.ts';
import { settingTable } from '../../../src/server/settings/setting-table.ts';
import { environmentName } from '../../../src/server/settings/settings.ts';
import { type Variant, variants } from '../../../src/server/variants/variants.ts';
import { migrationTable } from '../../../test/migration/differences.ts';
import { table } from '../../shared/page.js';
import { explainTables } from './explain-tables.ts';
import { hostileTables } from './hostile-tables.ts';

const code = (text: string): string => (text === '' ? '' : `\`${text}\``);

/** Endpoints, by path, with the status of each variant. */
function endpoints(): string {
  const paths = [
    ...new Set(Object.values(variants).flatMap((variant: Variant) => variant.endpoints.map(({ path }) => path))),
  ];
  return table(
    ['endpoint', 'variant', 'no token', 'valid token', 'valid token, scope missing'],
    paths.map((path) => {
      const served = Object.entries<Variant>(variants).flatMap(([name, variant]) => {
        const endpoint = variant.endpoints.find((candidate) => candidate.path === path);
        return endpoint === undefined ? [] : [{ name: name.toUpperCase(), variant, endpoint }];
      });
      const access = served[0]?.endpoint.access;
      const scopes = access === undefined || access === 'open' ? [] : (access.scopes ?? []);
      return [
        code(`GET ${path}`),
        served.map(({ name }) => name).join(', '),
        access === 'open' ? '200' : '401',
        '200',
        scopes.length === 0
          ? ''
          : `${served.map(({ name, variant }) => `${variant.insufficientScopeStatus} (${name})`).join(', ')}: needs ${scopes.map(code).join(' ')}`,
      ];
    }),
  );
}

/** Members of a line of the audit trail. */
function auditTable(): string {
  return table(
    ['member', 'meaning'],
    Object.entries(auditMembers).map(([name, { meaning }]) => [code(name), meaning]),
  );
}

function settings(): string {
  const perVariant = (read: (variant: Variant) => string): string => {
    const [a, b] = [read(variants.a), read(variants.b)];
    return a === b ? code(a) : `${code(a)} (B: ${code(b)})`;
  };
  return table(
    ['environment', 'flag', 'default', 'meaning'],
    Object.values<SettingRow>(settingTable).map((setting) => {
      const { defaultValue } = setting;
      return [
        perVariant((variant) => environmentName(setting, variant)),
        setting.secret === 'always' ? '' : code(`--${setting.flag}`),
        defaultValue === undefined
          ? 'required'
          : perVariant((variant) => (typeof defaultValue === 'function' ? defaultValue(variant) : defaultValue)),
        describeSetting(setting),
      ];
    }),
  );
}

/** Groups of refusals: the start of the page of each reason, and a sentence for its readers. */
const refusalGroups: readonly (readonly [heading: string, starts: RegExp, sentence: string])[] = [
  [
    '401, no error code',
    /^401, no/,
    'The request had no credentials of an accepted kind: the client must send a token.',
  ],
  [
    '401, `invalid_token`',
    /^401, `invalid_token/,
    'The token is not accepted: the client must get a new one, or its settings are wrong.',
  ],
  [
    '401, DPoP',
    /^401, `(?:invalid_dpop|use_dpop)/,
    'The token may be valid: its proof of possession is missing or wrong.',
  ],
  [
    '401, step-up',
    /^401, `insufficient_user/,
    'The token is valid, but the user must sign in again, or in a stronger way.',
  ],
  [
    '403',
    /^403/,
    'The token is valid, but it does not permit this request: a new token of the same kind does not help.',
  ],
  ['4xx, the request', /^4/, 'The request itself cannot be read or served: no token changes that.'],
  [
    '5xx',
    /^5/,
    'The server could not decide, or not serve: the token may be valid, and the client can try again later.',
  ],
];

/** A section for each reason, so that each has an anchor, in groups by the response that the client sees. */
function refusals(): string {
  const groups = new Map(refusalGroups.map(([heading, , sentence]) => [heading, [`## ${heading}\n\n${sentence}`]]));
  for (const page of (Object.keys(failures) as Reason[]).map(formatReasonPage)) {
    // The keys of the table are the reasons. The second paragraph is the response.
    const [, response = ''] = page.split('\n\n');
    const [heading = ''] = refusalGroups.find(([, starts]) => starts.test(response)) ?? [];
    const group = groups.get(heading);
    if (group === undefined) throw new Error(`no group of refusals: ${response}`);
    group.push(page);
  }
  return [...groups.values()].flat().join('\n\n');
}

function rules(): string {
  return table(
    ['member', 'meaning'],
    Object.entries(ruleMembers).map(([name, { docs }]) => [code(name), docs]),
  );
}

/** The tables of the documentation that say what the code says, by the name of their place. */
export const readmeTables: Readonly<Record<string, string>> = {
  endpoints: endpoints(),
  settings: settings(),
  refusals: refusals(),
  ruleMembers: rules(),
  audit: auditTable(),
  migration: migrationTable(),
  ...explainTables,
  ...hostileTables,
};
