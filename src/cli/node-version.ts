/** The oldest Node that the package runs on. */
const oldest = '20.19.0';

/** Describes why the commands do not run on this runtime; `undefined` on a supported Node. */
export function refuseRuntime(version: string, global: object = globalThis): string | undefined {
  const other = ['Bun', 'Deno'].find((name) => name in global);
  if (other !== undefined) return `portcullis runs its commands on Node only. On ${other}, use the library.`;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
  return isOld ? `portcullis needs Node ${oldest} or newer; this is Node ${version}.` : undefined;
}
