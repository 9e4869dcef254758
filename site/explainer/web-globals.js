// Globals of Node that the sources use: Buffer, with base64url, which the package lacks.
import { Buffer } from 'buffer/index.js';

const { from } = Buffer;
const { toString: encode } = Buffer.prototype;

Buffer.from = (value, encoding, ...more) =>
  encoding === 'base64url'
    ? from(value.replaceAll('-', '+').replaceAll('_', '/'), 'base64')
    : from(value, encoding, ...more);
Buffer.prototype.toString = function (encoding, ...more) {
  if (encoding !== 'base64url') return encode.call(this, encoding, ...more);
  return encode
    .call(this, 'base64', ...more)
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
};

globalThis.Buffer = Buffer;
globalThis.process ??= { env: {}, versions: {}, platform: 'browser', emitWarning: () => {} };
