/** The names of the settings that decide about an address. */
export interface AddressSettings {
  readonly host: string;
  readonly port: string;
}

/** An address that cannot be had. */
export interface FailedAddress {
  /** As it is told: host and port, the path of a unix socket, or words. */
  readonly shown: string;
  readonly isUnix: boolean;
  readonly settings: AddressSettings;
}

type Describe = (address: FailedAddress) => string;

const chooseAnother: Describe = ({ isUnix, settings: { host, port } }) =>
  isUnix
    ? `a file or a socket in use is there. Choose another path with ${host}, or remove it`
    : `choose another with ${port}, or stop what uses it`;
const noSuchName: Describe = ({ settings: { host } }) =>
  `the name has no address here. Let ${host} be an address of this machine, such as 127.0.0.1`;

/** What to do about it, by the code of Node's error. */
const reasons: Readonly<Record<string, Describe>> = {
  EADDRINUSE: chooseAnother,
  EADDRNOTAVAIL: ({ settings: { host } }) =>
    `this machine has no such address. Let ${host} be one of its own: 127.0.0.1 for this machine only, 0.0.0.0 for every network`,
  EACCES: ({ isUnix, settings: { host, port } }) =>
    isUnix
      ? `this user may not write there. Choose another path with ${host}, or allow it`
      : `this user may not use that port, as is usual below 1024. Choose one from 1024 with ${port}, or give the process CAP_NET_BIND_SERVICE`,
  ENOENT: ({ settings: { host } }) =>
    `its folder does not exist. Create the folder, or choose another path with ${host}`,
  ENOTFOUND: noSuchName,
  EAI_AGAIN: noSuchName,
  EAFNOSUPPORT: ({ settings: { host } }) =>
    `this machine does not have that family of addresses. Write an IPv4 address in ${host}`,
};

/** Says why nothing can listen there, and what to write. */
export function describeListenFailure(address: FailedAddress, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const describe = Object.hasOwn(reasons, code) ? reasons[code] : undefined;
  const { host, port } = address.settings;
  const why = describe?.(address) ?? `the system says ${code || 'no reason'}. Correct ${host} or ${port}`;
  return `cannot listen on ${address.shown}; ${why}`;
}
