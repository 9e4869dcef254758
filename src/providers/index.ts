export {
  auth0,
  authentik,
  betterAuth,
  clerk,
  cognito,
  entraV1,
  entraV2,
  firebase,
  githubActions,
  gitLab,
  keycloak,
  kinde,
  kubernetes,
  logto,
  okta,
  ory,
  pingOne,
  workOs,
  zitadel,
} from './presets.ts';
export { fillIn, type PresetIssuer, type PresetValues, type ProviderPreset } from './provider-preset.ts';
export { findTenants } from './tenants.ts';
