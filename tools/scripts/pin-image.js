// node tools/scripts/pin-image.js [--check]: writes the digest of the base image into deploy/image/Dockerfile, or checks that one is
// there. A tag can be moved to another image; a digest cannot. Needs docker with buildx and the network, except for `--check`.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const path = 'deploy/image/Dockerfile';
const text = readFileSync(path, 'utf8');
const [, image, pinned] = /^ARG BASE=([^@\s]+)(?:@(\S+))?$/m.exec(text) ?? [];
const isDigest = (value) => /^sha256:[0-9a-f]{64}$/.test(value ?? '');

function readDigest() {
  const command = ['buildx', 'imagetools', 'inspect', '--format', '{{.Manifest.Digest}}', image];
  return execFileSync('docker', command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

const digest = process.argv.includes('--check') ? pinned : readDigest();
if (isDigest(digest)) {
  writeFileSync(path, text.replace(/^ARG BASE=.*$/m, `ARG BASE=${image}@${digest}`));
  console.log(`${image}@${digest}`);
} else {
  console.error(
    `${path}: ${image} has no digest. Run node tools/scripts/pin-image.js on a machine with docker, and commit the file.`,
  );
  process.exitCode = 1;
}
