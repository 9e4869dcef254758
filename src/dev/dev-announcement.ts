import { failures, type Reason } from '../core/failures.ts';
import type { Settings } from '../server/settings/settings.ts';
import type { Endpoint } from '../server/variants/endpoints.ts';
import { clientIds, defaultIdpPort } from './provider/defaults.ts';
import type { LocalIdp } from './provider/local-idp.ts';

export interface Listening {
  readonly url: string;
  readonly adminUrl: string | undefined;
}

export interface ConsoleLink {
  readonly link: string;
  readonly keyFile: string;
}

export function announceProvider(idp: LocalIdp, audience: string): string {
  return `${describeProvider(idp)}

# In the terminal of your own server, so that it trusts the certificate:
export NODE_EXTRA_CA_CERTS=${idp.certificateFile}
# In your code:
createResourceServer({ issuer: '${idp.issuer}', audience: '${audience}' })
# An access token:
npx portcullis token --scope "read:messages"

Stop with Ctrl-C.
`;
}

/** Reports whether `dev` runs the gate instead of the service. */
export function isGate({ upstream, rules }: Pick<Settings, 'upstream' | 'rules'>): boolean {
  return upstream !== '' || rules !== '';
}

/** Describes a started service or gate, with requests to paste. No line of a request exceeds 80 columns. */
export function announceService(
  idp: LocalIdp,
  settings: Settings,
  { url, adminUrl }: Listening,
  console: ConsoleLink | undefined,
): string {
  const docs = settings.docs ? new URL('/docs', url).href : 'off';
  const rows = [
    ...(isGate(settings)
      ? [
          `Gate               ${url}`,
          ...(settings.rules === '' ? [] : [`Rules              ${settings.rules}`]),
          ...(settings.upstream === '' ? [] : [`Upstream           ${settings.upstream}`]),
        ]
      : [`Service            ${url}`, `Documentation      ${docs}`]),
    `Admin              ${adminUrl ?? 'off'}`,
    ...(console === undefined ? ['Console            off'] : [`  console key      ${console.keyFile}`]),
  ];
  const requests = (isGate(settings) ? describeGateRequests(settings) : describeRequests(settings)).map(
    ({ path, scope, expected }) =>
      `# ${path}, ${describeToken(scope)}: ${expected}\n${writeCommand(idp, new URL(path, url), scope)}`,
  );
  return `${describeProvider(idp)}
${rows.join('\n')}

${requests.join('\n')}

More tokens: npx portcullis token --help. Stop with Ctrl-C.
${console === undefined ? '' : `Open the console with this line. The key file has its key.\n${console.link}\n`}`;
}

function describeProvider(idp: LocalIdp): string {
  return `
${idp.notices.join('\n')}

Identity provider  ${idp.issuer}
  certificate      ${idp.certificateFile}
  service client   ${clientIds.service}: client credentials
  client secret    ${idp.clientSecretFile}
  public client    ${clientIds.app}: authorization code with PKCE`;
}

/** A request to paste. `scope`: `undefined` without a token. */
interface SampleRequest {
  readonly path: string;
  readonly scope: string | undefined;
  readonly expected: string;
}

function describeGateRequests({ rules }: Settings): readonly SampleRequest[] {
  if (rules !== '') return [{ path: '/', scope: '', expected: 'as the rules decide' }];
  const { status, description } = failures.missing_credentials;
  return [
    { path: '/', scope: undefined, expected: `${status} ${description}` },
    { path: '/', scope: '', expected: 'the response of the upstream' },
  ];
}

const samplePaths: ReadonlySet<string> = new Set(['/api/public', '/api/private', '/api/private-scoped']);

function describeRequests(settings: Settings): readonly SampleRequest[] {
  return settings.variant.endpoints.flatMap((endpoint) => {
    if (!samplePaths.has(endpoint.path)) return [];
    const { path, access } = endpoint;
    const scopes =
      access === 'open'
        ? [undefined]
        : access.scopes === undefined
          ? [undefined, '']
          : [undefined, '', 'read:messages'];
    return scopes.map((scope) => ({ path, scope, expected: predictResponse(endpoint, scope, settings) }));
  });
}

function describeToken(scope: string | undefined): string {
  if (scope === undefined) return 'no token';
  return scope === '' ? 'token' : `token with ${scope}`;
}

function writeCommand({ issuer }: LocalIdp, url: URL, scope: string | undefined): string {
  if (scope === undefined) return `curl -i ${url}`;
  const idp = new URL(issuer).port === String(defaultIdpPort) ? '' : ` --idp ${issuer}`;
  return `curl -i ${url} -H "Authorization: Bearer \\
$(npx portcullis token${idp}${scope === '' ? '' : ` --scope ${scope}`})"`;
}

/** Predicts status and description from the tables of the service. */
function predictResponse({ access }: Endpoint, scope: string | undefined, settings: Settings): string {
  const refuse = (reason: Reason, status: number = failures[reason].status): string =>
    `${status} ${failures[reason].description}`;
  if (access === 'open') return '200';
  if (scope === undefined) return refuse('missing_credentials');
  if (settings.dpopRequired) return refuse('bearer_not_accepted');
  const isMissing = (access.scopes ?? []).some((needed) => needed !== scope);
  return isMissing ? refuse('insufficient_scope', settings.variant.insufficientScopeStatus) : '200';
}
