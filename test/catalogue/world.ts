import { generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { signBytes, writeCompact } from '../../src/core/jose/sign.ts';
import { send } from '../support/http-client.ts';
import { listen } from '../support/listening.ts';
import type { OpenedService } from '../support/open-service.ts';
import { passStart } from '../support/pass-start.ts';
import {
  hashToken,
  makeProofKey,
  mintProof,
  type ProofChanges,
  type ProofKey,
  thumbprintOf,
} from '../support/proofs.ts';
import { takeRsaKeys } from '../support/rsa-keys.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { openVariant, variants } from '../support/variant-service.ts';
import type { ServiceName } from './row.ts';

/** A key that signs access tokens. */
export interface SigningKey {
  readonly kid: string;
  readonly alg: 'RS256' | 'ES256' | 'EdDSA';
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** With `kid` and `alg`. */
  readonly jwk: Readonly<Record<string, unknown>>;
}

/** Differences from a valid token; members that are `undefined` are omitted. */
export interface TokenDraft {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Bytes instead of the JSON. */
  readonly headerBytes?: string | Uint8Array;
  readonly claimsBytes?: string | Uint8Array;
  /** Signs, and is named by `kid` and `alg`. Default: the RSA key. */
  readonly key?: SigningKey;
  /** The signing key instead of `key`. */
  readonly sign?: (input: Buffer) => Buffer;
  /** Last change to the text. */
  readonly finish?: (token: string) => string;
}

/** A listener that must get no request. */
export interface Decoy {
  readonly url: string;
  /** Connections so far. */
  readonly connections: number;
  close(): Promise<void>;
}

/** Inputs of all cases. */
export interface World {
  readonly provider: TestProvider;
  readonly decoy: Decoy;
  /** A marker in every crafted token and request, which no response and no log line may contain. */
  readonly marker: string;
  /** Published by the provider. */
  readonly keys: Readonly<Record<'rsa' | 'ec' | 'ed', SigningKey>>;
  /** An unpublished key. */
  readonly foreign: SigningKey;
  /** The key of an honest DPoP client, to which bound tokens are bound. */
  readonly proofKey: ProofKey;
  /** URL of the default service; without one, an address that no client calls. */
  readonly url: string;
  /** The services that were started. */
  readonly services: ReadonlyMap<ServiceName, OpenedService>;
  /** One of them; throws where it was not started. */
  service(name?: ServiceName): OpenedService;
  /** Seconds since the epoch. */
  now(): number;
  /** A valid token with the changes of the draft. */
  mint(draft?: TokenDraft): string;
  /** Header lines of a valid DPoP request for `/api/private` on the default service, with changes. */
  dpop(changes?: ProofChanges, draft?: TokenDraft): readonly string[];
  close(): Promise<void>;
}

/** Settings of the services in addition to the provider. */
export const environments: Readonly<Record<ServiceName, Readonly<Record<string, string>>>> = {
  default: {},
  allAlgorithms: { ALGORITHMS: 'RS256,RS384,RS512,PS256,PS384,PS512,ES256,ES384,ES512,EdDSA' },
  trustedProxy: { TRUST_PROXY: '127.0.0.1' },
};

/** Parts of a world in addition to one provider and the default service. */
export interface WorldOptions {
  /** Keys published in addition to the keys of the world. */
  readonly published?: readonly unknown[];
  /** Default: only `default`. */
  readonly services?: readonly ServiceName[];
  /** Further settings of the default service. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Starts a provider, a decoy, and services of variant A before them, which are ready. No service: requests go to the library. */
export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const { published = [], services: names = ['default'], settings } = options;
  const [provider, decoy] = await Promise.all([startTestProvider(), openDecoy()]);
  const keys = { rsa: makeSigningKey('RS256'), ec: makeSigningKey('ES256'), ed: makeSigningKey('EdDSA') };
  for (const jwk of [...Object.values(keys).map((key) => key.jwk), ...published]) provider.publish(jwk);
  const proofKey = makeProofKey();
  const marker = `x${randomBytes(8).toString('hex')}`;
  const [variantA] = variants;
  if (variantA === undefined) throw new Error('There is no variant.');
  const start = async (name: ServiceName): Promise<readonly [ServiceName, OpenedService]> => {
    const service = await openVariant(variantA, provider, {
      ...environments[name],
      ...(name === 'default' && settings),
    });
    while ((await send(service.adminUrl ?? '', '/readyz')).status !== 200) await sleep(50);
    return [name, service];
  };
  const services = new Map(await Promise.all(names.map(start)));
  if (services.size > 0) await passStart();
  const url = services.get('default')?.url ?? 'http://127.0.0.1:8';
  const service = (name: ServiceName = 'default'): OpenedService => {
    const found = services.get(name);
    if (found === undefined) throw new Error('This service was not started.');
    return found;
  };
  const now = (): number => Math.floor(Date.now() / 1000);

  const mint = (draft: TokenDraft = {}): string => {
    const { key = keys.rsa, finish = (token) => token } = draft;
    const header = { alg: key.alg, kid: key.kid, typ: 'at+jwt', marker, ...draft.header };
    const { issuer: iss, audience: aud } = provider;
    const claims = { iss, aud, sub: 'user|1', iat: now(), exp: now() + 3600, scope: 'read:messages', marker };
    const claimsBytes = draft.claimsBytes ?? JSON.stringify({ ...claims, ...draft.claims });
    return finish(
      writeCompact({
        header: draft.headerBytes ?? JSON.stringify(header),
        payload: claimsBytes,
        sign: draft.sign ?? ((bytes) => signBytes(bytes, key)),
      }),
    );
  };

  const dpop = (changes: ProofChanges = {}, draft: TokenDraft = {}): readonly string[] => {
    const token = mint({ ...draft, claims: { cnf: { jkt: thumbprintOf(proofKey.jwk) }, ...draft.claims } });
    const htu = `${url}/api/private`;
    const claims = { jti: randomUUID(), htm: 'GET', htu, iat: now(), ath: hashToken(token), marker };
    return ['Authorization', `DPoP ${token}`, 'DPoP', mintProof(claims, { key: proofKey, ...changes })];
  };

  return {
    provider,
    decoy,
    marker,
    keys,
    foreign: makeSigningKey('RS256'),
    proofKey,
    url,
    services,
    service,
    now,
    mint,
    dpop,
    async close() {
      await Promise.all([...services.values()].map((each) => each.stop()));
      await Promise.all([provider.close(), decoy.close()]);
    },
  };
}

/** base64url of a part of a token. */
export function encodePart(bytes: string | Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

const pairs = {
  RS256: takeRsaKeys,
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

/** Makes a new key with a `kid` of its own. */
export function makeSigningKey(alg: SigningKey['alg']): SigningKey {
  const { privateKey, publicKey } = pairs[alg]();
  const kid = `${alg}-${randomUUID()}`;
  return { kid, alg, privateKey, publicKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg } };
}

async function openDecoy(): Promise<Decoy> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  const { origin: url, close } = await listen(server);
  return {
    url,
    close,
    get connections() {
      return connections;
    },
  };
}
