import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import { demoUser } from './defaults.ts';

/** Path of the sign-in pages. The id of the interaction follows. */
export const interactionPath = '/interaction/';

/**
 * Signs the demo user in with one click and without a password. A POST needs the cookie of the interaction and, if present,
 * the own origin.
 */
export function createInteraction(provider: Provider) {
  const { origin } = new URL(provider.issuer);
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      if (request.method === 'POST') {
        if ((request.headers.origin ?? origin) !== origin) return sendPage(response, 403, foreign);
        const details = await provider.interactionDetails(request, response);
        const login = { accountId: details.session?.accountId ?? demoUser.id };
        const consent = details.prompt.name === 'consent' ? { grantId: await grantMissing(provider, details) } : {};
        const result = { login, consent };
        return await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
      }
      const details = await provider.interactionDetails(request, response);
      return sendPage(response, 200, details.prompt.name === 'consent' ? describeConsent(details) : signIn);
    } catch {
      // The cookie is missing, or the interaction has ended.
      return sendPage(response, 400, ended);
    }
  };
}

type Details = Awaited<ReturnType<Provider['interactionDetails']>>;

function readMissing({ prompt }: Details) {
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details as {
    readonly missingOIDCScope?: readonly string[];
    readonly missingResourceScopes?: Readonly<Record<string, readonly string[]>>;
  }; // as the provider describes a prompt for consent
  return { oidc: missingOIDCScope, resources: Object.entries(missingResourceScopes) };
}

/** Adds the missing scopes to the grant of the client, or to a new grant. Returns its id. */
async function grantMissing(provider: Provider, details: Details): Promise<string> {
  const known = details.grantId === undefined ? undefined : await provider.Grant.find(details.grantId);
  const clientId = String(details.params['client_id']);
  const accountId = details.session?.accountId ?? demoUser.id;
  const grant = known ?? new provider.Grant({ clientId, accountId });
  const { oidc, resources } = readMissing(details);
  if (oidc.length > 0) grant.addOIDCScope(oidc.join(' '));
  for (const [resource, scopes] of resources) grant.addResourceScope(resource, scopes.join(' '));
  return grant.save();
}

/** Writes the page for consent. Scopes are known names; the client chose its own, so the page omits it. */
function describeConsent(details: Details): string {
  const { oidc, resources } = readMissing(details);
  const scopes = [...oidc, ...resources.flatMap(([, names]) => names)].map((name) => `<li>${escapeHtml(name)}</li>`);
  return `<h1>Allow access</h1>
<p>An application requests, as ${demoUser.email}:</p>
<ul>${scopes.join('')}</ul>
<form method="post"><button autofocus>Allow</button></form>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

const signIn = `<h1>Sign in</h1>
<p>This is a local identity provider, for development only: there is no password.</p>
<form method="post"><button autofocus>Continue as ${demoUser.email}</button></form>`;
const ended = '<h1>This sign-in has ended</h1>\n<p>Start again from the application.</p>';
const foreign = '<h1>Refused</h1>\n<p>Confirm this sign-in on its own page.</p>';

function sendPage(response: ServerResponse, status: number, main: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    // No form-action: browsers apply it to the redirect to the application as well.
    'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  });
  response.end(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Local identity provider</title>
<main>
${main}
</main>
</html>
`);
}
