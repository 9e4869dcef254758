import { describe, expect, it } from 'vitest';
import { type Failure, failures, type Reason, reasonsElsewhere } from '../../../src/core/failures.ts';
import type { DpopMode } from '../../../src/core/http/credentials.ts';
import { metadataPath } from '../../../src/core/refusal/challenge.ts';
import { errorBodyFormats } from '../../../src/core/refusal/error-body.ts';
import { createOpenApi, placeDocument } from '../../../src/serve/docs/openapi.ts';
import { type Variant, type VariantName, variants } from '../../../src/server/variants/variants.ts';

// The part of OpenAPI 3.1 that the document uses.
type Members<T> = Readonly<Record<string, T>>;
interface ResponseObject {
  readonly description: string;
  readonly headers?: Members<{ readonly schema: object }>;
  readonly content?: Members<{ readonly schema: object; readonly examples?: Members<{ readonly value: unknown }> }>;
}
interface Reference {
  readonly $ref: string;
}
interface Operation {
  readonly summary: string;
  readonly security: readonly Members<readonly string[]>[];
  readonly responses: Members<ResponseObject | Reference>;
}
interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly license: Members<string> };
  readonly paths: Members<Members<Operation>>;
  readonly components: {
    readonly securitySchemes: Members<{ readonly type: string; readonly scheme: string }>;
    readonly responses: Members<ResponseObject>;
  };
}

function create(
  variant: Variant,
  mode: DpopMode,
  format: keyof typeof errorBodyFormats = variant.defaults.errorBody,
): Document {
  const { endpoints, insufficientScopeStatus } = variant;
  const errorBody = errorBodyFormats[format];
  const document = createOpenApi({ endpoints, mode, errorBody, insufficientScopeStatus, version: '1.2.3' });
  // As it goes over the wire; its shape is what these tests are about.
  return JSON.parse(JSON.stringify(document)) as Document;
}

function operationOf(document: Document, path: string): Operation {
  const operation = document.paths[path]?.['get'];
  if (operation === undefined) throw new Error(`no GET ${path}`);
  return operation;
}

function resolve(document: Document, response: ResponseObject | Reference | undefined): ResponseObject {
  if (response === undefined) throw new Error('no such response');
  if (!('$ref' in response)) return response;
  let target: unknown = document;
  for (const name of response.$ref.replace(/^#\//, '').split('/')) {
    if (typeof target !== 'object' || target === null || !Object.hasOwn(target, name)) {
      throw new Error(`${response.$ref} leads nowhere`);
    }
    target = (target as Readonly<Record<string, unknown>>)[name]; // its own member, as was just seen
  }
  return target as ResponseObject; // what it is, each case asserts
}

const names = Object.keys(variants) as VariantName[]; // the keys are the names
const modes: readonly DpopMode[] = ['off', 'allowed', 'required'];
const cases = names.flatMap((name) => modes.map((mode) => [name, mode] as const));

describe.each(cases)('variant %s, DPoP %s', (name, mode) => {
  const variant: Variant = variants[name];
  const document = create(variant, mode);
  const operations = Object.entries(document.paths).map(([path, { get }]) => [path, get] as const);

  it('is OpenAPI 3.1 with title, version and license', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'Portcullis', version: '1.2.3', license: { name: 'MIT' } });
    // OpenAPI 3.1: identifier and url exclude each other.
    expect(Object.keys(document.info.license)).not.toContain('url');
  });

  it('lists the endpoints of the variant and the metadata, each with GET alone', () => {
    expect(Object.keys(document.paths)).toEqual([...variant.endpoints.map(({ path }) => path), metadataPath]);
    for (const item of Object.values(document.paths)) expect(Object.keys(item)).toEqual(['get']);
  });

  it('every operation → says what it is, who may call it, and a 200 with the schema of the endpoint', () => {
    for (const [path, operation] of operations) {
      const endpoint = variant.endpoints.find((each) => each.path === path);
      const success = resolve(document, operation?.responses['200']);
      expect(operation?.summary, path).not.toBe('');
      expect(operation?.security, path).toBeInstanceOf(Array);
      expect(success.content?.['application/json']?.schema, path).toEqual(endpoint?.schema ?? { type: 'object' });
    }
  });

  it('every reference → leads to a response with a description', () => {
    const references = JSON.stringify(document).match(/"\$ref":"[^"]*"/g) ?? [];
    expect(references.length).toBeGreaterThan(0);
    for (const [path, operation] of operations) {
      for (const [status, response] of Object.entries(operation?.responses ?? {})) {
        expect(status, path).toMatch(/^[1-5]\d\d$/);
        expect(resolve(document, response).description, path).not.toBe('');
      }
    }
  });

  it('security → names schemes that are declared, those that are accepted', () => {
    const accepted = mode === 'off' ? ['Bearer'] : mode === 'required' ? ['DPoP'] : ['Bearer', 'DPoP'];
    expect(Object.keys(document.components.securitySchemes)).toEqual(accepted);
    for (const [scheme, { type, scheme: written }] of Object.entries(document.components.securitySchemes)) {
      expect([type, written]).toEqual(['http', scheme.toLowerCase()]);
    }
    for (const { path, access } of variant.endpoints) {
      const expected = access === 'open' ? [] : accepted.map((scheme) => ({ [scheme]: access.scopes ?? [] }));
      expect(operationOf(document, path).security, path).toEqual(expected);
    }
    expect(operationOf(document, metadataPath).security).toEqual([]);
  });

  it('refusals → listed where a token is needed, with the status of the variant for a missing scope', () => {
    for (const { path, access } of variant.endpoints) {
      const statuses = Object.keys(operationOf(document, path).responses);
      const scoped = access !== 'open' && access.scopes !== undefined && variant.insufficientScopeStatus === 403;
      const expected = access === 'open' ? ['200'] : ['200', '400', '401', ...(scoped ? ['403'] : []), '503'];
      expect(statuses, path).toEqual(expected);
    }
  });

  it('names of components → of the characters that OpenAPI allows', () => {
    for (const component of Object.values(document.components)) {
      for (const key of Object.keys(component)) expect(key).toMatch(/^[\w.-]+$/);
    }
  });
});

describe('refusals', () => {
  it.each(['detail', 'flat', 'message', 'problem'] as const)('form %s → examples are bodies of that form', (format) => {
    const { responses } = create(variants.a, 'allowed', format).components;
    const errorBody = errorBodyFormats[format];
    const rows = Object.entries<Failure>(failures) as [Reason, Failure][]; // the keys of the table are the reasons
    for (const [reason, { status, error, description }] of rows) {
      if (reasonsElsewhere.has(reason) || error === 'access_denied') continue;
      const { contentType, body } = errorBody({ status, error: error ?? 'unauthorized', description });
      const examples = responses[`Refused${status}`]?.content?.[contentType]?.examples ?? {};
      expect(Object.values(examples)).toContainEqual({ value: JSON.parse(body) });
    }
  });

  it('each body → shown once', () => {
    const { responses } = create(variants.a, 'allowed').components;
    for (const { content = {} } of Object.values(responses)) {
      const shown = Object.values(content).flatMap(({ examples = {} }) => Object.values(examples));
      const texts = shown.map((example) => JSON.stringify(example));
      expect(new Set(texts).size).toBe(texts.length);
    }
  });

  it.each([
    ['a', ['Refused400', 'Refused401', 'Refused403', 'Refused500', 'Refused503']],
    ['b', ['Refused400', 'Refused401', 'Refused500', 'Refused503']],
  ] as const)('variant %s → by status %j, each with the headers it comes with', (name, keys) => {
    const { responses } = create(variants[name], 'allowed').components;
    expect(Object.keys(responses).toSorted()).toEqual(keys);
    const headers = Object.entries(responses).map(([key, response]) => [key, Object.keys(response.headers ?? {})]);
    expect(Object.fromEntries(headers)).toEqual({
      Refused400: [],
      Refused401: ['WWW-Authenticate'],
      ...(name === 'a' && { Refused403: ['WWW-Authenticate'] }),
      Refused500: [],
      Refused503: ['Retry-After'],
    });
  });

  it('no fix and no reason in the document: those are for the operator', () => {
    const text = JSON.stringify(create(variants.a, 'allowed'));
    for (const { fix } of Object.values<Failure>(failures))
      expect(text).not.toContain(JSON.stringify(fix).slice(1, -1));
    expect(text).not.toContain('unknown_kid');
  });
});

describe('location', () => {
  const document = { ...create(variants.a, 'allowed') };
  const base = 'https://api.example/v1';

  it('servers → the URL of the service; everything else is unchanged', () =>
    expect(placeDocument(document, undefined, base)).toEqual({ ...document, servers: [{ url: base }] }));

  it.each(['https://idp.example/realms/main', 'https://idp.example/realms/main/'])(
    'issuer %s → where tools read its flows',
    (issuer) => {
      const openIdConnectUrl = 'https://idp.example/realms/main/.well-known/openid-configuration';
      const securitySchemes = { Bearer: { scheme: 'bearer' }, Provider: { type: 'openIdConnect', openIdConnectUrl } };
      expect(placeDocument(document, issuer, base)).toMatchObject({ components: { securitySchemes } });
    },
  );
});
