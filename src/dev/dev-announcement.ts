import { failures, type Reason } from '../core/failures.ts';
import type { Settings } from '../server/settings/settings.ts';
import { clientIds, defaultIdpPort } from './provider/defaults.ts';
import type { LocalIdp } from './provider/local-idp.ts';

export type Listening = Readonly<{ url: string; adminUrl: string | undefined }>;

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
  console: Readonly<{ link: string; keyFile: string }> | undefined,
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
type SampleRequest = Readonly<{ path: string; scope: string | undefined; expected: string }>;

function describeGateRequests({ rules }: Settings): readonly SampleRequest[] {
  if (rules !== '') return [{ path: '/', scope: '', expected: 'as the rules decide' }];
  const { status, description } = failures.missing_credentials;
  return [
    { path: '/', scope: undefined, expected: `${status} ${description}` },
    { path: '/', scope: '', expected: 'the response of the upstream' },
  ];
}

const samplePaths: ReadonlySet<string> = new Set(['/api/public', '/api/private', '/api/private-scoped']);

/** Predicts status and description from the tables of the service. */
function describeRequests({ variant, dpopRequired }: Settings): readonly SampleRequest[] {
  const refuse = (reason: Reason, status: number = failures[reason].status): string =>
    `${status} ${failures[reason].description}`;
  const admitted = dpopRequired ? refuse('bearer_not_accepted') : '200';
  const lacking = dpopRequired ? admitted : refuse('insufficient_scope', variant.insufficientScopeStatus);
  return variant.endpoints.flatMap(({ path, access }): readonly SampleRequest[] => {
    if (!samplePaths.has(path)) return [];
    if (access === 'open') return [{ path, scope: undefined, expected: '200' }];
    const none = { path, scope: undefined, expected: refuse('missing_credentials') };
    if (access.scopes === undefined) return [none, { path, scope: '', expected: admitted }];
    return [none, { path, scope: '', expected: lacking }, { path, scope: 'read:messages', expected: admitted }];
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
