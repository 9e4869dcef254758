export {
  auth0,
  authentik,
  cognito,
  entraV1,
  entraV2,
  keycloak,
  logto,
  okta,
  pingOne,
  zitadel,
} from './presets.ts';
export { fillIn, type PresetIssuer, type PresetValues, type ProviderPreset } from './provider-preset.ts';
