import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import { type Answer, send } from './answer.ts';
import { demoUser } from './defaults.ts';

/** Where the sign-in pages are; the rest of the path is the interaction's own. */
export const interactionPath = '/interaction/';

/** Serves the sign-in page and takes its one button. */
export type HandleInteraction = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * Signs the demo user in with one click and without a password. A click counts only from this page: the cookie of
 * the interaction is needed, and where the browser names an origin, it is ours.
 */
export function createInteraction(provider: Provider): HandleInteraction {
  const { origin } = new URL(provider.issuer);
  return async (request, response) => {
    try {
      if (request.method === 'POST') {
        if ((request.headers.origin ?? origin) !== origin) return send(response, page(403, foreign));
        const result = { login: { accountId: demoUser.id }, consent: {} };
        return await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
      }
      await provider.interactionDetails(request, response);
      return send(response, page(200, signIn));
    } catch {
      // The cookie is missing, or the interaction has ended: the fix is the same.
      return send(response, page(400, over));
    }
  };
}

const signIn = `<h1>Sign in</h1>
<p>This is a local identity provider, for development only: there is no password.</p>
<form method="post"><button autofocus>Continue as ${demoUser.email}</button></form>`;
const over = '<h1>This sign-in is over</h1>\n<p>Start again from the application.</p>';
const foreign = '<h1>Not from here</h1>\n<p>This sign-in can only be confirmed on its own page.</p>';

function page(status: number, main: string): Answer {
  return {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      // No form-action: browsers would hold it against the redirect to the application as well.
      'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    },
    body: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Local identity provider</title>
<main>
${main}
</main>
</html>
`,
  };
}
