import { describe, expect, it } from 'vitest';
import { type Failure, failures } from '../../../src/failures.ts';
import { formatFix, nameHint, nameSettings } from '../../../src/server/settings/setting-names.ts';
import { variants } from '../../../src/server/variants/variants.ts';

const a = nameSettings({ variant: variants.a });
const b = nameSettings({ variant: variants.b });

describe('the fix of a refusal', () => {
  it('one about something that the operator sets → ends with its variable, as the variant names it', () => {
    const { fix } = failures.invalid_audience;
    expect(formatFix(failures.invalid_audience, a)).toBe(`${fix} Setting: IDP_AUDIENCE.`);
    expect(formatFix(failures.invalid_audience, b)).toBe(`${fix} Setting: IdpApiIdentifier.`);
    expect(formatFix(failures.bearer_not_accepted, b)).toMatch(/ Setting: DPOP_REQUIRED\.$/);
  });

  it('a variable that is set with the prefix → is named with the prefix', () => {
    const names = nameSettings({ variant: variants.a, spellings: { IDP_AUDIENCE: 'PORTCULLIS_IDP_AUDIENCE' } });
    expect(formatFix(failures.invalid_audience, names)).toMatch(/ Setting: PORTCULLIS_IDP_AUDIENCE\.$/);
    expect(names.issuer).toBe('IDP_DOMAIN');
  });

  it('any other → stays as it is', () => {
    const others = Object.values<Failure>(failures).filter(({ concept }) => concept === undefined);
    expect(others.length).toBeGreaterThan(30);
    expect(others.filter((failure) => formatFix(failure, a) !== failure.fix)).toEqual([]);
  });
});

describe('the hint of a log line', () => {
  it('begins with a concept → begins with its variable; the other facts stay', () => {
    const context = { expected: 'http://a/', hint: 'trustProxy with X-Forwarded-Proto' };
    expect(nameHint(context, a)).toEqual({ expected: 'http://a/', hint: 'TRUST_PROXY with X-Forwarded-Proto' });
  });

  it.each([
    undefined,
    { issuer: 'https://idp.example/' },
    { hint: 'htu' },
    { hint: 'trustProxy' },
    { hint: 'constructor with more' },
    { hint: 3 },
  ])('%j → as it is', (context) => {
    expect(nameHint(context, a)).toBe(context);
  });
});
