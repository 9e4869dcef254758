// Versions and sections of CHANGELOG.md (https://keepachangelog.com).

/**
 * Reads the unreleased entries by kind, such as `Added` or `Fixed`.
 *
 * @param {string} changelog
 * @returns {Record<string, readonly string[]>}
 */
export function readUnreleased(changelog) {
  const sections = readNotes(changelog, 'Unreleased').split(/^### /m).slice(1);
  return Object.fromEntries(
    sections.map((section) => {
      const [kind = '', ...lines] = section.split('\n');
      return [kind.trim(), lines.filter((line) => line.startsWith('- '))];
    }),
  );
}

/**
 * Returns the next version by semantic versioning. Before 1.0 a breaking change raises the minor version.
 *
 * @param {string} version
 * @param {{ breaks: boolean, kinds: readonly string[] }} changes
 */
export function nextVersion(version, { breaks, kinds }) {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  if (breaks && major > 0) return `${major + 1}.0.0`;
  if (breaks || kinds.some((kind) => !['Fixed', 'Security'].includes(kind))) return `${major}.${minor + 1}.0`;
  return `${major}.${minor}.${patch + 1}`;
}

/** Reports whether a version may contain breaking changes after another version. @param {string} from @param {string} to */
export function allowsBreaking(from, to) {
  const [[fromMajor, fromMinor], [toMajor, toMinor]] = [from, to].map((version) => version.split('.').map(Number));
  return toMajor > fromMajor || (fromMajor === 0 && toMajor === 0 && toMinor > fromMinor);
}

/** Turns the unreleased entries into the section of a version. @param {string} changelog @param {string} version @param {string} date */
export const closeUnreleased = (changelog, version, date) =>
  changelog.replace(/^## \[Unreleased\]\n/m, `## [Unreleased]\n\n## [${version}] - ${date}\n`);

/** Returns the entries of a version, for the notes of its release. @param {string} changelog @param {string} version */
export function readNotes(changelog, version) {
  const heading = `## [${version}]`;
  const section = changelog.split(/^(?=## \[)/m).find((text) => text.startsWith(heading));
  if (section === undefined) throw new RangeError(`CHANGELOG.md has no section ${heading}`);
  return section.slice(section.indexOf('\n')).trim();
}
