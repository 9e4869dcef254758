import { errorBodyFormats } from '../../core/refusal/error-body.ts';
import { Refused } from '../../core/refused.ts';
import { type Answer, createAnswer, type HeaderList } from '../../server/http/exchange.ts';
import { type AppOptions, type AppRoute, json, type Respond } from '../app-route.ts';
import { docsPaths } from '../served.ts';
import { docsPolicy, writeDocsPage } from './docs-page.ts';
import { createOpenApi, placeDocument } from './openapi.ts';

const pageHeaders: HeaderList = [
  ...['content-type', 'text/html; charset=utf-8'],
  ...['content-security-policy', docsPolicy],
  ...['x-content-type-options', 'nosniff'],
  ...['referrer-policy', 'no-referrer'],
];

export function documentationRoutes({ settings, mode, version, readExternalUrl }: AppOptions): readonly AppRoute[] {
  const { endpoints, insufficientScopeStatus } = settings.variant;
  const { issuer, jwksUri, audience } = settings;
  // With the address of the keys, the issuer may have no metadata.
  const provider = jwksUri === undefined ? issuer : undefined;
  const errorBody = errorBodyFormats[settings.errorBody];
  const document = createOpenApi({ endpoints, mode, errorBody, insufficientScopeStatus, version });
  const place = (write: (base: string) => Answer) => answerBelow(readExternalUrl, write);
  return [
    {
      path: docsPaths.document,
      respond: place((base) => createAnswer(200, json, JSON.stringify(placeDocument(document, provider, base)))),
    },
    {
      path: docsPaths.page,
      respond: place((base) =>
        createAnswer(200, pageHeaders, writeDocsPage({ endpoints, mode, issuer, audience }, base)),
      ),
    },
  ];
}

/** A response with the URL that the client used. It is written again only for another URL. */
function answerBelow(readExternalUrl: AppOptions['readExternalUrl'], write: (base: string) => Answer): Respond {
  let last: { readonly base: string; readonly answer: Answer } | undefined;
  return ({ request, connection }) => {
    const url = readExternalUrl(request, connection);
    if (url instanceof Refused) return url;
    const base = url.origin + url.prefix;
    if (last?.base !== base) last = { base, answer: write(base) };
    return last.answer;
  };
}
