/** The oldest Node that the package runs on. */
const oldest = '20.19.0';

export function refuseOldNode(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
  return isOld ? `portcullis needs Node ${oldest} or newer; this is Node ${version}.` : undefined;
}
