import { describe, expect, it } from 'vitest';
import { readIssuerName } from '../../../src/core/resource-server/issuers/trusted-issuer.ts';

describe('the name of an issuer', () => {
  it.each([
    ['idp.example', 'https://idp.example/'],
    ['tenant.eu.auth0.com', 'https://tenant.eu.auth0.com/'],
    ['localhost:8443', 'https://localhost:8443/'],
    ['[::1]:8443', 'https://[::1]:8443/'],
    ['https://idp.example/', 'https://idp.example/'],
    ['https://idp.example/realms/main', 'https://idp.example/realms/main'],
    ['https://idp.example/realms/main/', 'https://idp.example/realms/main/'],
  ])('%s → %s', (text, issuer) => expect(readIssuerName(text)).toBe(issuer));

  it.each([
    ['', /it is empty/],
    [' idp.example', /white space/],
    ['"https://idp.example/"', /quotation marks/],
    ['https://idp.example/{tenantid}/v2.0', /replace the placeholder.*findTenants/],
    ['https://{host}/realms/main', /replace the placeholder/],
    ['https://idp.example', /write the domain without https:\/\/.*with its slash.*truly has no slash/],
    ['idp.example/', /write the domain without its slash/],
    ['idp.example/realms/main', /an issuer with a path is written in full/],
    ['http://idp.example/', /write https:\/\//],
    ['HTTPS://idp.example/', /in lower case/],
    ['https://user:hunter2@idp.example/', /take the user information out/],
    ['https://idp.example/.well-known/openid-configuration', /write the issuer without \/\.well-known/],
    ['https://idp.example/.well-known/jwks.json', /write the issuer without \/\.well-known\/jwks\.json/],
    ['https://idp.example/?tenant=1', /take query and fragment out/],
    ['https://idp.example/#main', /take query and fragment out/],
    ['idp example', /write a domain/],
    ['idp.example:99999', /write a domain/],
    ['https://[::/', /write a domain/],
  ])('"%s" → TypeError that says the fix, and does not echo it', (text, fix) => {
    expect(() => readIssuerName(text)).toThrow(TypeError);
    expect(() => readIssuerName(text)).toThrow(fix);
    expect(() => readIssuerName(text)).not.toThrow(/hunter2/);
  });
});
