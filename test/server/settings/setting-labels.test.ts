import { describe, expect, it } from 'vitest';
import { labelSettings } from '../../../src/server/settings/setting-labels.ts';
import type { EffectiveSetting } from '../../../src/server/settings/setting-report.ts';
import { variants } from '../../../src/server/variants/variants.ts';

const setting = (name: string, source: EffectiveSetting['source'], value = 'x'): EffectiveSetting => ({
  name,
  value,
  source,
});

/** The lines that explain would advise, with these settings in force. */
function advise(variant: 'a' | 'b', ...effective: readonly EffectiveSetting[]) {
  const { issuer, audience } = labelSettings({ variant: variants[variant], spellings: {} }, effective);
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
      withPath: 'ISSUER=https://id.example/realms/main, and take out IDP_DOMAIN',
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

  it('the value comes from a variable with the prefix → the variable with the prefix', () => {
    const spellings = { IDP_AUDIENCE: 'PORTCULLIS_IDP_AUDIENCE', IDP_DOMAIN: 'PORTCULLIS_IDP_DOMAIN' };
    const labels = labelSettings({ variant: variants.a, spellings }, [setting('IDP_AUDIENCE', 'environment')]);
    expect(labels.audience).toMatchObject({ name: 'PORTCULLIS_IDP_AUDIENCE', source: 'from the environment' });
    expect(labels.audience.set('urn:api')).toBe('PORTCULLIS_IDP_AUDIENCE=urn:api');
    expect(labels.issuer.set('https://id.example/realms/main')).toContain('take out PORTCULLIS_IDP_DOMAIN');
    expect(labels.trustProxy.name).toBe('TRUST_PROXY');
  });
});
