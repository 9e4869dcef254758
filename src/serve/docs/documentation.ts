import type { ExternalUrl } from '../../core/http/external-url.ts';
import { errorBodyFormats } from '../../core/refusal/error-body.ts';
import { version } from '../../core/version.ts';
import { type Answer, createAnswer, type HeaderList } from '../../server/http/exchange.ts';
import { type AppOptions, type AppRoute, json, respondBy } from '../app-route.ts';
import { docsPaths } from '../served.ts';
import { docsPolicy, writeDocsPage } from './docs-page.ts';
import { createOpenApi, placeDocument } from './openapi.ts';

const pageHeaders: HeaderList = [
  ...['content-type', 'text/html; charset=utf-8'],
  ...['content-security-policy', docsPolicy],
  ...['x-content-type-options', 'nosniff'],
  ...['referrer-policy', 'no-referrer'],
];

export function documentationRoutes({ settings, mode, readExternalUrl }: AppOptions): readonly AppRoute[] {
  const { endpoints, insufficientScopeStatus } = settings.variant;
  const { issuer, jwksUri, audience } = settings;
  // With the address of the keys, the issuer may have no metadata.
  const provider = jwksUri === undefined ? issuer : undefined;
  const errorBody = errorBodyFormats[settings.errorBody];
  const document = createOpenApi({ endpoints, mode, errorBody, insufficientScopeStatus, version });
  const writeDocument = (base: string): Answer =>
    createAnswer(200, json, JSON.stringify(placeDocument(document, provider, base)));
  const writePage = (base: string): Answer =>
    createAnswer(200, pageHeaders, writeDocsPage({ endpoints, mode, issuer, audience }, base));
  return [
    { path: docsPaths.document, respond: respondBy(readExternalUrl, keepLast(writeDocument)) },
    { path: docsPaths.page, respond: respondBy(readExternalUrl, keepLast(writePage)) },
  ];
}

/** Writes a response again only for another URL. */
function keepLast(write: (base: string) => Answer): (url: ExternalUrl) => Answer {
  let last: { readonly base: string; readonly answer: Answer } | undefined;
  return ({ origin, prefix }) => {
    const base = origin + prefix;
    if (last?.base !== base) last = { base, answer: write(base) };
    return last.answer;
  };
}
