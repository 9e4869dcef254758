import { proofLifetime } from '../dpop/proof-checks.ts';
import type { AccessError } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import { isTime } from '../jose/numeric-date.ts';
import type { Gathered } from '../resource-server/dry-run.ts';
import { audiencesOf, type InForce, type Setting, type SettingLabel, textOf } from './facts.ts';
import { shorten, showText, showValue } from './shown-text.ts';
import { formatDistance } from './shown-time.ts';

/** What one check shows besides its verdict. */
export interface Shown {
  readonly expected?: string | readonly string[];
  readonly seen?: string;
  readonly why?: string;
  readonly setting?: string;
}

/** What looks see: what was read of the call, and what it is held against. */
export interface View {
  readonly sight: Gathered;
  readonly force: InForce;
  /** Seconds since the epoch. */
  readonly now: number;
  /** Of the check, if it has failed. */
  readonly refusal: AccessError | undefined;
}

type Look = (view: View) => Shown;

const labelled = ({ name, source }: SettingLabel): string => (source === undefined ? name : `${name}, ${source}`);

/** A time of the claims, with the tolerance that decides. */
const time =
  (name: string, remark: (view: View) => string): Look =>
  (view) => {
    const value = view.sight.claims?.[name];
    if (value === undefined) return { why: 'absent' };
    if (typeof value !== 'number') return { seen: showValue(value), expected: 'a number of seconds' };
    // No calendar helps with what is no number of seconds.
    if (!isTime(value)) return { seen: String(value), why: remark(view) };
    return view.refusal === undefined
      ? { why: formatDistance(value, view.now) }
      : { seen: formatDistance(value, view.now), why: remark(view) };
  };

const tolerance = ({ sight: { issuer } }: View): string => `tolerance ${issuer?.expTolerance ?? 0} s`;
const lead = ({ sight: { issuer } }: View): string => `tolerance ${issuer?.nbfTolerance ?? 0} s`;
const form = (name: string): Look => time(name, () => 'a number of seconds from 0 to 10^11 is expected');

function describeScopes({ sight, force, refusal }: View): Shown {
  const needed = refusal?.scopes ?? force.scopes;
  const scope = sight.claims?.['scope'];
  if (refusal === undefined) return { why: needed.length === 0 ? 'none asked' : `has ${needed.join(' ')}` };
  return { expected: [needed.join(' ')], seen: showValue(scope) };
}

/** A hint that begins with a setting, as the operator calls the setting. */
function nameSetting(hint: unknown, { labels }: InForce): string {
  const [first = '', ...rest] = showValue(hint).split(' ');
  const label = rest.length > 0 && Object.hasOwn(labels, first) ? labels[first as Setting] : undefined; // an own member
  return [label?.name ?? first, ...rest].join(' ');
}

/** The facts that go with a refusal: they are made for the operator's log. */
function contextOf(refusal: AccessError | undefined, force: InForce): Shown {
  const { expected, received, hint, parameter, claim, defect } = refusal?.context ?? {};
  const detail = parameter ?? claim ?? defect;
  return {
    ...(expected !== undefined && { expected: showValue(expected) }),
    ...(received !== undefined && { seen: showValue(received) }),
    ...(detail !== undefined && { seen: showValue(detail) }),
    ...(hint !== undefined && { why: nameSetting(hint, force) }),
  };
}

const proofTime: Look = ({ sight, force, now, refusal }) => {
  const iat = sight.proofClaims?.['iat'];
  if (typeof iat !== 'number') return contextOf(refusal, force);
  return { seen: formatDistance(iat, now), expected: `from ${proofLifetime} s ago to 30 s ahead` };
};

const member = (part: (sight: Gathered) => JsonObject | undefined, name: string, expected?: string): Look => {
  return ({ sight, refusal }) => {
    const seen = showValue(part(sight)?.[name], 60);
    return refusal === undefined ? { why: seen } : { seen, ...(expected !== undefined && { expected }) };
  };
};
const headerOf = ({ header }: Gathered): JsonObject | undefined => header;

/** What each check shows, by its id; one that is not here shows what its refusal carries. */
const looks: Readonly<Record<string, Look>> = {
  url: () => ({}),
  credentials: ({ sight: { credentials }, refusal }) =>
    credentials === undefined || refusal !== undefined
      ? {}
      : {
          why: `${credentials.scheme}, ${credentials.token.length} characters, ${credentials.token.split('.').length} parts`,
        },
  shape: () => ({}),
  claims_form: () => ({}),
  alg: ({ sight, force, refusal }) =>
    refusal === undefined
      ? { why: showValue(sight.header?.['alg'], 24) }
      : {
          seen: showValue(sight.header?.['alg'], 24),
          expected: force.algorithms,
          setting: labelled(force.labels.algorithms),
        },
  typ: member(headerOf, 'typ', 'JWT, at+jwt, or none'),
  kid_form: ({ sight, refusal }) => {
    const kid = sight.header?.['kid'];
    return refusal === undefined
      ? { why: kid === undefined ? 'no kid' : `kid ${shorten(textOf(kid))}` }
      : { seen: showValue(kid, 24), expected: 'a text of 1 to 256 characters' };
  },
  kid: () => ({}),
  issuer: ({ sight, force, refusal }) =>
    refusal === undefined
      ? { why: showValue(sight.claims?.['iss']) }
      : {
          seen: showValue(sight.claims?.['iss']),
          expected: force.issuers.map((issuer) => showText(issuer)),
          setting: labelled(force.labels.issuer),
        },
  issuer_typ: member(headerOf, 'typ', 'at+jwt'),
  issuer_alg: () => ({}),
  key: ({ sight, refusal }) =>
    refusal === undefined
      ? { why: `published as ${shorten(textOf(sight.header?.['kid']))}` }
      : { seen: `kid ${shorten(textOf(sight.header?.['kid']))}`, expected: 'a kid that the provider publishes' },
  signature: () => ({}),
  aud: ({ sight, force, refusal }) => {
    const list = audiencesOf(sight.claims ?? {});
    const seen = list.length === 1 ? showText(list[0] ?? '') : showValue(sight.claims?.['aud']);
    if (refusal === undefined) return { why: seen };
    return {
      seen,
      expected: force.audiences.map((audience) => showText(audience)),
      setting: labelled(force.labels.audience),
    };
  },
  exp_present: () => ({}),
  exp_form: form('exp'),
  exp: time('exp', tolerance),
  nbf_form: form('nbf'),
  nbf: time('nbf', lead),
  iat_present: () => ({}),
  iat_form: form('iat'),
  iat: time('iat', lead),
  // A subject is a person: that it is there is all that is shown.
  sub: ({ sight }) => ({ why: `sub ${sight.claims?.['sub'] === undefined ? 'absent' : 'present (not shown)'}` }),
  profile_sub: () => ({}),
  scope: ({ sight, refusal }) =>
    refusal === undefined
      ? {
          why: sight.claims?.['scope'] === undefined ? 'scope absent' : `scope ${showValue(sight.claims['scope'], 80)}`,
        }
      : { seen: showValue(sight.claims?.['scope'], 80), expected: 'one text with spaces' },
  kind: () => ({}),
  client_id: () => ({}),
  jti: () => ({}),
  confirmation: ({ sight, force, refusal }) =>
    refusal === undefined
      ? { why: sight.claims?.['cnf'] === undefined ? 'none asked' : 'bound' }
      : contextOf(refusal, force),
  scopes: describeScopes,
  any_scope: describeScopes,
  permissions: ({ force, refusal }) => (refusal === undefined ? {} : { expected: [force.permissions.join(' ')] }),
  proof_method: ({ sight, refusal }) => {
    const seen = showValue(sight.proofClaims?.['htm'], 60);
    return refusal === undefined ? { why: seen } : { seen, expected: showText(sight.call.request.method, 60) };
  },
  proof_url: ({ force, refusal }) => {
    const { expected, seen } = contextOf(refusal, force);
    return { ...(expected !== undefined && { expected }), ...(seen !== undefined && { seen }) };
  },
  proof_age: proofTime,
  proof_lead: proofTime,
};

/** What a check shows. */
export function look(id: string, view: View): Shown {
  return (Object.hasOwn(looks, id) ? looks[id] : undefined)?.(view) ?? contextOf(view.refusal, view.force);
}
