import type { ProviderPreset } from './provider-preset.ts';

const preset = <const P extends ProviderPreset>(values: P): P => values;

/** Form of an Entra tenant id. A domain name, `common` or `organizations` is never in `iss`. */
const tenantId = {
  pattern: '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  fix: 'write the directory (tenant) id, as in 8a1b0c2d-0000-4000-8000-3e4f5a6b7c8d',
} as const;

/**
 * Auth0. `audience` is the Identifier of the API. Without an `audience` in the request, its access tokens are opaque.
 *
 * https://auth0.com/docs/secure/tokens/access-tokens/access-token-profiles
 */
export const auth0 = preset({ name: 'Auth0', issuer: 'https://{domain}/', rules: { permissionsClaim: 'permissions' } });

/**
 * A custom authorization server of Okta: `{server}` is its id, such as `default`. `audience` is that of the server.
 *
 * https://developer.okta.com/docs/concepts/auth-servers/
 * https://developer.okta.com/docs/guides/validate-access-tokens/
 */
export const okta = preset({
  name: 'Okta, custom authorization server',
  issuer: 'https://{domain}/oauth2/{server}',
  rules: { scopeClaim: 'scp', clientIdClaim: 'cid' },
});

/**
 * Microsoft Entra, tokens of version 2.0. `audience` is the client id of the API.
 *
 * https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference
 */
export const entraV2 = preset({
  name: 'Microsoft Entra, v2.0 tokens',
  issuer: 'https://login.microsoftonline.com/{tenant}/v2.0',
  forms: { tenant: tenantId },
  rules: { scopeClaim: 'scp', permissionsClaim: 'roles' },
});

/**
 * Microsoft Entra, tokens of version 1.0: what an API gets that has not asked for others. `audience` is the Application
 * ID URI or the client id of the API. Discovery is not at the issuer, so the place of the keys is written down.
 *
 * https://learn.microsoft.com/en-us/entra/identity-platform/access-tokens
 */
export const entraV1 = preset({
  name: 'Microsoft Entra, v1.0 tokens',
  issuer: 'https://sts.windows.net/{tenant}/',
  jwksUri: 'https://login.microsoftonline.com/common/discovery/keys',
  forms: { tenant: tenantId },
  rules: { scopeClaim: 'scp', permissionsClaim: 'roles', clientIdClaim: 'appid' },
});

/**
 * Keycloak. `audience` is what an Audience mapper adds. Permissions are the roles of the realm.
 *
 * https://www.keycloak.org/docs/latest/server_admin/#audience-support
 */
export const keycloak = preset({
  name: 'Keycloak',
  issuer: 'https://{host}/realms/{realm}',
  rules: { permissionsClaim: ['realm_access', 'roles'] },
});

/**
 * Amazon Cognito user pools. Its access tokens have no `aud`: name `clientIds` instead of an audience. Permissions are
 * the groups of the user.
 *
 * https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html
 */
export const cognito = preset({
  name: 'Amazon Cognito',
  issuer: 'https://cognito-idp.{region}.amazonaws.com/{userPool}',
  rules: { permissionsClaim: 'cognito:groups' },
});

/**
 * ZITADEL, applications whose access tokens are JWTs. `audience` is the id of the project.
 *
 * https://zitadel.com/docs/apis/openidoauth/claims
 */
export const zitadel = preset({ name: 'ZITADEL', issuer: 'https://{domain}', rules: {} });

/**
 * authentik, providers with a signing key. `{application}` is the slug of the application, `audience` the client id of its
 * provider. Permissions are the groups of the user.
 *
 * https://docs.goauthentik.io/add-secure-apps/providers/oauth2/
 */
export const authentik = preset({
  name: 'authentik',
  issuer: 'https://{host}/application/o/{application}/',
  rules: { permissionsClaim: 'groups' },
});

/**
 * Logto. `audience` is the API identifier of the API resource. Its keys are of P-384 unless somebody has changed that.
 *
 * https://docs.logto.io/authorization/validate-access-tokens
 */
export const logto = preset({ name: 'Logto', issuer: 'https://{domain}/oidc', rules: { algorithms: ['ES384'] } });

/**
 * PingOne. `{host}` is that of the region, such as `auth.pingone.eu`. `audience` is that of the custom resource.
 *
 * https://developer.pingidentity.com/pingone-api/foundations/authentication-concepts/access-tokens-and-id-tokens/token-claims.html
 */
export const pingOne = preset({ name: 'PingOne', issuer: 'https://{host}/{environment}/as', rules: {} });

/**
 * Clerk, session tokens. `{domain}` is the host of the Frontend API, such as `clerk.example.com`. The tokens have no `aud`, and
 * `azp` has the origin of the application: list the origins in `clientIds`.
 *
 * https://clerk.com/docs/guides/sessions/session-tokens
 * https://clerk.com/docs/guides/sessions/manual-jwt-verification
 */
export const clerk = preset({
  name: 'Clerk, session tokens',
  issuer: 'https://{domain}',
  jwksUri: 'https://{domain}/.well-known/jwks.json',
  rules: {},
});

/**
 * better-auth with its JWT plugin. Issuer and `audience` are its base URL, unless the plugin sets others.
 *
 * https://better-auth.com/docs/plugins/jwt
 */
export const betterAuth = preset({
  name: 'better-auth, JWT plugin',
  issuer: 'https://{host}',
  jwksUri: 'https://{host}/api/auth/jwks',
  rules: { algorithms: ['EdDSA'] },
});

/**
 * Firebase Authentication. `audience` is the id of the project. Its ID tokens are what its clients send to servers.
 *
 * https://firebase.google.com/docs/auth/admin/verify-id-tokens
 */
export const firebase = preset({
  name: 'Firebase Authentication',
  issuer: 'https://securetoken.google.com/{project}',
  forms: {
    project: { pattern: '^[a-z][a-z0-9-]{4,28}[a-z0-9]$', fix: 'write the id of the project, as in orders-4f2a1' },
  },
  rules: {},
});

/**
 * WorkOS AuthKit, session tokens. They have no `aud`, and `client_id` has the application: list it in `clientIds`. Environments from
 * before the middle of 2025 have the issuer `https://api.workos.com`.
 *
 * https://workos.com/docs/reference/authkit/session-tokens
 */
export const workOs = preset({
  name: 'WorkOS AuthKit',
  issuer: 'https://api.workos.com/user_management/{client}',
  jwksUri: 'https://api.workos.com/sso/jwks/{client}',
  forms: { client: { pattern: '^client_[0-9A-Za-z]+$', fix: 'write the client ID, as in client_01HBEQKA6K4Q' } },
  rules: { permissionsClaim: 'permissions' },
});

/**
 * Kinde. `audience` is the audience of the API. Tokens of machines have no `sub`.
 *
 * https://docs.kinde.com/build/tokens/about-access-tokens/
 * https://docs.kinde.com/machine-to-machine-applications/about-m2m/token-structure-and-claims-for-m2m-applications
 */
export const kinde = preset({
  name: 'Kinde',
  issuer: 'https://{domain}',
  rules: { scopeClaim: 'scp', permissionsClaim: 'permissions' },
});

/**
 * Ory Network, clients whose access tokens are JWTs. `{host}` is the host of the project, such as
 * `slug.projects.oryapis.com`. `audience` is an audience that the client requests.
 *
 * https://www.ory.com/docs/oauth2-oidc/jwt-access-token
 */
export const ory = preset({ name: 'Ory Network', issuer: 'https://{host}', rules: { scopeClaim: 'scp' } });

/**
 * GitHub Actions. Each workflow of each account can request a token with each `audience`: always require the owner or the
 * repository in the `policy` of the issuer.
 *
 * https://docs.github.com/en/actions/reference/security/oidc
 */
export const githubActions = preset({
  name: 'GitHub Actions',
  issuer: 'https://token.actions.githubusercontent.com',
  rules: {},
});

/**
 * GitLab CI/CD, ID tokens of jobs. Each job of the instance can request a token with each `audience`: always require the
 * namespace or the project in the `policy` of the issuer.
 *
 * https://docs.gitlab.com/ci/secrets/id_token_authentication/
 */
export const gitLab = preset({ name: 'GitLab CI/CD', issuer: 'https://{host}', rules: {} });

/**
 * Kubernetes service accounts, projected tokens. `{host}` is the host of the cluster's issuer; `audience` is the audience of the
 * projected volume. Each pod of the cluster can request a token with each audience: list the accounts by `sub` in a policy.
 *
 * https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
 */
export const kubernetes = preset({ name: 'Kubernetes service accounts', issuer: 'https://{host}', rules: {} });
