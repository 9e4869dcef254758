import type { ReadExternalUrl } from '../../http/external-url.ts';
import { errorBodyFormats } from '../../refusal/error-body.ts';
import { Refused } from '../../refused.ts';
import { type Answer, createAnswer, type HeaderList } from '../../server/http/answer.ts';
import { type AppOptions, type AppRoute, json, type Respond } from '../app-route.ts';
import { createDocsPage } from './docs-page.ts';
import { localTokensRoute } from './local-tokens.ts';
import { createOpenApi, type DocumentPlace, placeDocument } from './openapi.ts';
import type { FindFlows, OAuthFlows } from './provider-flows.ts';

export function documentationRoutes({
  settings,
  mode,
  version,
  readExternalUrl,
  findFlows = () => undefined,
  findLocalTokens,
}: AppOptions): readonly AppRoute[] {
  const { endpoints, insufficientScopeStatus } = settings.variant;
  const errorBody = errorBodyFormats[settings.errorBody];
  const { issuer, audience } = settings;
  const sources = { endpoints, mode, errorBody, insufficientScopeStatus };
  const document = createOpenApi({ ...sources, version });
  // The certificate of the local provider is for this name.
  const isLocal = issuer !== undefined && new URL(issuer).hostname === 'localhost';
  const findTokens = isLocal ? findLocalTokens : undefined;
  const page = createDocsPage({ ...sources, issuer, audience, isLocal: findTokens !== undefined });
  const pageHeaders: HeaderList = [
    ...['content-type', 'text/html; charset=utf-8'],
    ...['content-security-policy', page.contentSecurityPolicy],
    ...['x-content-type-options', 'nosniff'],
    ...['referrer-policy', 'no-referrer'],
  ];
  const writeDocument = ({ base, flows }: DocumentPlace): Answer =>
    createAnswer(200, json, JSON.stringify(placeDocument(document, issuer, { base, flows })));
  const writePage = ({ base }: DocumentPlace): Answer => createAnswer(200, pageHeaders, page.write(base));
  return [
    { path: '/openapi.json', respond: answerBelow(readExternalUrl, findFlows, writeDocument) },
    { path: '/docs', respond: answerBelow(readExternalUrl, () => undefined, writePage) },
    ...(issuer === undefined || findTokens === undefined ? [] : [localTokensRoute(issuer, findTokens, errorBody)]),
  ];
}

/** A response with the URL that the client used. It is written again only for another URL or other flows. */
function answerBelow(
  readExternalUrl: ReadExternalUrl,
  findFlows: FindFlows,
  write: (place: DocumentPlace) => Answer,
): Respond {
  let last: (DocumentPlace & { readonly answer: Answer }) | undefined;
  const answer = (flows: OAuthFlows | undefined, base: string): Answer => {
    if (last?.base !== base || last.flows !== flows) last = { base, flows, answer: write({ base, flows }) };
    return last.answer;
  };
  return ({ request, connection }) => {
    const url = readExternalUrl(request, connection);
    if (url instanceof Refused) return url;
    const base = url.origin + url.prefix;
    const flows = findFlows();
    return flows instanceof Promise ? flows.then((found) => answer(found, base)) : answer(flows, base);
  };
}
