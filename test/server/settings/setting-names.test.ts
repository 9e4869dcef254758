import { describe, expect, it } from 'vitest';
import { type Failure, failures } from '../../../src/core/failures.ts';
import { formatFix, labelSettings, nameHint, nameSettings } from '../../../src/server/settings/setting-names.ts';
import type { EffectiveSetting } from '../../../src/server/settings/setting-report.ts';
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

  it('any other → unchanged', () => {
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
  ])('%j → unchanged', (context) => expect(nameHint(context, a)).toBe(context));
});

const setting = (name: string, source: EffectiveSetting['source'], value = 'x'): EffectiveSetting => ({
  name,
  value,
  source,
});

/** The lines that explain would advise, with these settings in force. */
function advise(variant: 'a' | 'b', ...effective: readonly EffectiveSetting[]) {
  const { issuer, audience } = labelSettings({ variant: variants[variant] }, effective);
  return {
    name: issuer.name,
    ofDomain: issuer.set('https://id.example/'),
    withPath: issuer.set('https://id.example/realms/main'),
    audience: audience.set('urn:api'),
  };
}

describe('the line that changes a setting', () => {
  it('the issuer is named by its domain → the domain, or ISSUER in its place', () => {
    expect(advise('a', setting('IDP_DOMAIN', 'environment'), setting('ISSUER', 'default', ''))).toEqual({
      name: 'IDP_DOMAIN',
      ofDomain: 'IDP_DOMAIN=id.example',
      withPath: 'ISSUER=https://id.example/realms/main, and remove IDP_DOMAIN',
      audience: 'IDP_AUDIENCE=urn:api',
    });
  });

  it('the issuer is named in full → ISSUER, and no word of the domain', () => {
    expect(advise('b', setting('IdpDomain', 'default', ''), setting('ISSUER', 'file'))).toEqual({
      name: 'ISSUER',
      ofDomain: 'ISSUER=https://id.example/',
      withPath: 'ISSUER=https://id.example/realms/main',
      audience: 'IdpApiIdentifier=urn:api',
    });
  });

  it('the value comes from a flag, which wins over variables → the flag', () => {
    const flags = [setting('IDP_DOMAIN', 'flag'), setting('ISSUER', 'default', ''), setting('IDP_AUDIENCE', 'flag')];
    expect(advise('a', ...flags)).toMatchObject({ ofDomain: '--domain=id.example', audience: '--audience=urn:api' });
  });
});
