// Shared parts of all servers of a run: folder, certificate, provider, keys, mint, responses to copy.
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { thumbprint } from '../../build/core/jose/jwk.js';
import { makeFolder } from '../shared/folder.js';
import { makeIdentity } from '../shared/identity.js';
import { startHelper } from '../shared/processes.js';
import { makeClaims, makeIssuerKey, makeKeyPair, publicJwk, signJws } from '../shared/tokens.js';
import { startMint } from './mint.js';

const audience = 'https://api.example.com/';
const pem = /** @type {const} */ ({ type: 'pkcs8', format: 'pem' });

/** Opens the scene; `close` ends its processes and removes its files. */
export async function openScene() {
  const folder = makeFolder('bench');
  // Apache drops root, and the secret files are in a separate folder.
  chmodSync(folder, 0o755);
  const identity = await makeIdentity(folder);
  const write = (name, text) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };

  const tokenKey = makeIssuerKey('RS256', 'bench');
  const provider = startHelper(new URL('idp.js', import.meta.url));
  const domain = await provider.ask('start', { identity, keys: [{ jwk: tokenKey.jwk }] });
  const issuer = `https://${domain}/`;
  const holder = makeKeyPair('ec', { namedCurve: 'P-256' });
  const proofJwk = publicJwk(holder.publicKey.export({ format: 'jwk' }));
  const mint = startMint();
  const about = { alg: 'RS256', kid: tokenKey.kid, key: tokenKey.pem, issuer, audience };

  /** One token by itself, with other claims or another header. */
  const mintOne = (claims = {}, header = {}) =>
    signJws(
      { alg: 'RS256', typ: 'JWT', kid: tokenKey.kid, ...header },
      makeClaims({ ...about, now: Math.floor(Date.now() / 1000), claims }),
      tokenKey.privateKey,
    );
  const bound = mintOne({ cnf: { jkt: thumbprint(proofJwk) } });

  return {
    folder,
    write,
    audience,
    domain,
    issuer,
    jwksUri: `${issuer}.well-known/jwks.json`,
    certificateFile: identity.certificateFile,
    tokenKeyFile: write('token-key.pem', tokenKey.publicKey.export({ type: 'spki', format: 'pem' })),
    proofKeyFile: write('proof-key.pem', holder.publicKey.export({ type: 'spki', format: 'pem' })),
    mint,
    mintOne,
    makeBearer: (count) => mint.make('bearer', count, about),
    makeProofs: (count, url) =>
      mint.make('proof', count, { token: bound, url, jwk: proofJwk, proofKey: holder.privateKey.export(pem) }),
    async close() {
      await Promise.all([mint.close(), provider.end()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
