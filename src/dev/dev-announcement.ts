import { failures, type Reason } from '../failures.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { Endpoint } from '../server/variants/endpoint.ts';
import { clientIds } from './provider/defaults.ts';
import type { LocalIdp } from './provider/local-idp.ts';

/** Where the service listens. */
export interface Listening {
  readonly url: string;
  readonly adminUrl: string | undefined;
}

/** The same, with what is told of the console. */
export interface Announced extends Listening {
  readonly console: string;
}

/** How to point a server of one's own at the provider. */
export function announceProvider(idp: LocalIdp, audience: string): string {
  return `
${idp.notices.join('\n')}

Identity provider  ${idp.issuer}
  certificate      ${idp.certificateFile}
  client           ${clientIds.service}: client credentials; its secret is in ${idp.clientSecretFile}
  client           ${clientIds.app}: authorization code with PKCE, no secret
  introspection    ${idp.introspectionEndpoint}

# In the terminal of your own server, so that it trusts the certificate:
export NODE_EXTRA_CA_CERTS=${idp.certificateFile}
# In your code:
createResourceServer({ issuer: '${idp.issuer}', audience: '${audience}' })
# A token to call it with:
npx portcullis token --scope "read:messages"

Stop with Ctrl-C.
`;
}

/** Calls to the server behind the gate, ready to be pasted. */
export async function announceGate(
  idp: LocalIdp,
  { upstream }: Settings,
  { url, adminUrl, console }: Announced,
): Promise<string> {
  const { status, description } = failures.missing_credentials;
  return `
${idp.notices.join('\n')}

Identity provider  ${idp.issuer}
  certificate      ${idp.certificateFile}
  client           ${clientIds.service}: client credentials; its secret is in ${idp.clientSecretFile}
  client           ${clientIds.app}: authorization code with PKCE, no secret
Gate               ${url}
Upstream           ${upstream}
Admin              ${adminUrl ?? 'off'}
Console            ${console}

# / without a token answers ${status}: ${description}
curl -i ${new URL('/', url)}
# / with a token answers what the upstream answers
curl -i -H 'Authorization: Bearer ${await idp.token()}' ${new URL('/', url)}

More tokens: npx portcullis token. Stop with Ctrl-C.
`;
}

/** A token to be pasted, and what it stands for. */
interface Sample {
  readonly title: string;
  readonly token: string | undefined;
  readonly scope: string | undefined;
}

const shownPaths: ReadonlySet<string> = new Set(['/api/public', '/api/private', '/api/private-scoped']);

/** Calls that are ready to be pasted, each with the answer that it gets. */
export async function announceService(
  idp: LocalIdp,
  settings: Settings,
  { url, adminUrl, console }: Announced,
): Promise<string> {
  const scope = 'read:messages';
  const none = { title: 'without a token', token: undefined, scope: undefined };
  const plain = { title: 'with a token without scope', token: await idp.token(), scope: undefined };
  const scoped = { title: `with a token with the scope ${scope}`, token: await idp.token({ scope }), scope };
  const calls = settings.variant.endpoints.flatMap((endpoint) => {
    if (!shownPaths.has(endpoint.path)) return [];
    const { path, access } = endpoint;
    const samples = access === 'open' ? [none] : access.scopes === undefined ? [none, plain] : [none, plain, scoped];
    return samples.flatMap((sample) => {
      const header = sample.token === undefined ? '' : ` -H 'Authorization: Bearer ${sample.token}'`;
      return [
        `# ${path} ${sample.title} answers ${predictAnswer(endpoint, sample, settings)}`,
        `curl -i${header} ${new URL(path, url)}`,
      ];
    });
  });
  return `
${idp.notices.join('\n')}

Identity provider  ${idp.issuer}
  certificate      ${idp.certificateFile}
  client           ${clientIds.service}: client credentials; its secret is in ${idp.clientSecretFile}
  client           ${clientIds.app}: authorization code with PKCE, no secret
Service            ${url}
Admin              ${adminUrl ?? 'off'}
Console            ${console}
Documentation      ${settings.docs ? `${new URL('/docs', url)}, where each call can be tried` : 'off'}

${calls.join('\n')}

More tokens: npx portcullis token --scope "${scope}". Stop with Ctrl-C.
`;
}

/** Status and gist of the service's answer, from the tables that the service itself answers from. */
function predictAnswer(endpoint: Endpoint, { token, scope }: Sample, settings: Settings): string {
  const refuse = (reason: Reason, status: number = failures[reason].status): string =>
    `${status}: ${failures[reason].description}`;
  if (endpoint.access === 'open') return `200: ${JSON.stringify(endpoint.body)}`;
  if (token === undefined) return refuse('missing_credentials');
  if (settings.dpopRequired) return refuse('bearer_not_accepted');
  const { scopes = [] } = endpoint.access;
  if (scopes.some((needed) => needed !== scope)) {
    return refuse('insufficient_scope', settings.variant.insufficientScopeStatus);
  }
  const claims = { iss: '', sub: clientIds.service, iat: 0, exp: 0 };
  return `200: ${JSON.stringify(endpoint.answer(claims, settings))}`;
}
