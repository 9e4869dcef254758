import type { CutoffEvent } from '../record.ts';

/** Short names of events that set cutoffs. */
export type SignalName = Exclude<CutoffEvent, 'revoke' | 'logout'>;

const base = 'https://schemas.openid.net/secevent';
const caep = `${base}/caep/event-type/`;
const risc = `${base}/risc/event-type/`;

/** Names of event types (CAEP 1.0, RISC 1.0), by short name. */
export const signalTypes: Readonly<Record<SignalName, string>> = {
  'session-revoked': `${caep}session-revoked`,
  'account-disabled': `${risc}account-disabled`,
  'account-purged': `${risc}account-purged`,
  'credential-compromise': `${risc}credential-compromise`,
  'sessions-revoked': `${risc}sessions-revoked`,
  'credential-change': `${caep}credential-change`,
  'token-claims-change': `${caep}token-claims-change`,
  'assurance-level-change': `${caep}assurance-level-change`,
};

export const signalNames = Object.keys(signalTypes) as readonly SignalName[]; // the keys are the names

/** Events after which no session of the user is left. */
export const usualSignals: readonly SignalName[] = signalNames.slice(0, 5);

export const signalOfType: ReadonlyMap<string, SignalName> = new Map(
  signalNames.map((name) => [signalTypes[name], name]),
);

export const verificationType = `${base}/ssf/event-type/verification`;
