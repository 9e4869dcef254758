// What all servers of a run share: a folder, a certificate, the provider, keys, the mint, the answers to copy.
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ensureIdentity } from '../../build/dev/provider/identity.js';
import { thumbprint } from '../../build/jose/jwk.js';
import { endChild, processors, startChild } from './children.js';
import { makeClaims, makeKeyPair, publicJwk, signJws, startMint } from './mint.js';

const audience = 'https://api.example.com/';
const pem = /** @type {const} */ ({ type: 'pkcs8', format: 'pem' });

/** A port that is free now. */
export async function findFreePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (probe.address());
  probe.close();
  await once(probe, 'close');
  return port;
}

function makeTokenKey(alg) {
  const pair =
    alg === 'RS256' ? makeKeyPair('rsa', { modulusLength: 2048 }) : makeKeyPair('ec', { namedCurve: 'P-256' });
  const kid = `bench-${alg.toLowerCase()}`;
  const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' };
  return { alg, kid, jwk, publicKey: pair.publicKey, key: pair.privateKey.export(pem) };
}

/** Opens the scene; `close` ends its processes and removes its files. */
export async function openScene() {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
  // Apache gives up being root; what is secret here is in a folder of its own.
  chmodSync(folder, 0o755);
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const identity = await ensureIdentity(folder, Math.floor(Date.now() / 1000));
  const keyFile = join(folder, 'identity', 'key.pem');
  const write = (name, text) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };

  /** Starts a provider with these keys; `issuer`, `jwksUri`, `domain`, and `stop`. */
  const startProvider = async (keys) => {
    const jwks = write(
      `${keys.map(({ kid }) => kid).join('-')}.json`,
      JSON.stringify({ keys: keys.map((k) => k.jwk) }),
    );
    const provider = startChild([process.execPath, fileURLToPath(new URL('idp.js', import.meta.url))], {
      processor: processors.load,
      env: { CERTIFICATE: identity.certificateFile, KEY: keyFile, JWKS: jwks },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [port] = await Promise.race([
      once(createInterface(provider.child.stdout), 'line'),
      provider.ended.then((status) => Promise.reject(new Error(`the provider ended with ${status}`))),
    ]);
    const domain = `127.0.0.1:${port}`;
    const issuer = `https://${domain}/`;
    return { domain, issuer, jwksUri: `${issuer}.well-known/jwks.json`, stop: () => endChild(provider) };
  };

  const tokenKey = makeTokenKey('RS256');
  const provider = await startProvider([tokenKey]);
  const holder = makeKeyPair('ec', { namedCurve: 'P-256' });
  const proofJwk = publicJwk(holder.publicKey.export({ format: 'jwk' }));
  const mint = startMint();
  const about = { alg: 'RS256', kid: tokenKey.kid, key: tokenKey.key, issuer: provider.issuer, audience };

  const signing = createPrivateKey(tokenKey.key);
  /** One token by itself, with other claims or another header. */
  const mintOne = (claims = {}, header = {}, key = signing) =>
    signJws(
      { alg: 'RS256', typ: 'JWT', kid: tokenKey.kid, ...header },
      makeClaims({ ...about, now: Math.floor(Date.now() / 1000), claims }),
      key,
    );
  const bound = mintOne({ cnf: { jkt: thumbprint(proofJwk) } });

  return {
    folder,
    write,
    audience,
    ...provider,
    startProvider,
    makeTokenKey,
    certificateFile: write('certificate.pem', identity.certificate),
    tokenKeyFile: write('token-key.pem', tokenKey.publicKey.export({ type: 'spki', format: 'pem' })),
    proofKeyFile: write('proof-key.pem', holder.publicKey.export({ type: 'spki', format: 'pem' })),
    mint,
    mintOne,
    makeBearer: (count, other = {}) => mint.make('bearer', count, { ...about, ...other }),
    makeProofs: (count, url) =>
      mint.make('proof', count, { token: bound, url, jwk: proofJwk, proofKey: holder.privateKey.export(pem) }),
    makeOwnKeys: (count, url, first) => mint.make('ownKey', count, { ...about, url }, first),
    async close() {
      await Promise.all([mint.close(), provider.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
