import { createPrivateKey, createPublicKey, hash, type KeyObject, randomUUID } from 'node:crypto';
import { readNonceClaim } from '../../dpop/nonce.ts';
import { failures } from '../../failures.ts';
import { signCompact } from '../../jose/sign.ts';
import type { ClientCredentials, DoctorCheck, DoctorContext } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';
import { targetOf } from './outside-checks.ts';
import { describeError, type HttpResponse, headerOf, sendRequest } from './requests.ts';

const fewPeers = 'needs --peer URL at least twice';
const noCredentials = 'needs --token-file and --dpop-key-file: a bound token and its key';

/** An instance. Its requests have the Host of the clients' URL. */
interface Instance {
  readonly shown: string;
  get(proof: string | undefined): Promise<HttpResponse>;
}

function openInstances(
  context: DoctorContext,
): { readonly target: URL; readonly instances: readonly Instance[] } | undefined {
  const [first, second] = context.peers;
  if (first === undefined || second === undefined) return undefined;
  const target = targetOf(context.outside ?? first, context);
  const instances = context.peers.map((peer) => {
    const url = new URL(target.pathname, peer);
    const get: Instance['get'] = (proof) =>
      sendRequest(url, {
        timeout: context.timeout,
        headers: {
          host: target.host,
          'x-forwarded-proto': target.protocol.slice(0, -1),
          ...(proof !== undefined && { authorization: `DPoP ${context.credentials?.token ?? ''}`, dpop: proof }),
        },
      });
    return { shown: peer.origin, get };
  });
  return { target, instances };
}

const unreachable = (shown: string, error: unknown, timeout: number): Outcome =>
  problem('D141', {
    seen: `${shown}: ${describeError(error, timeout)}`,
    fix: 'Start the instance, or correct its address. For https, the certificate must be for that address.',
  });

/** Gets a nonce of an instance: with any 401, or with the refusal of a proof without one. */
async function getNonce({ get }: Instance, target: URL, credentials: ClientCredentials): Promise<string | undefined> {
  const nonce = headerOf(await get(undefined), 'dpop-nonce');
  if (nonce !== undefined) return nonce;
  return headerOf(await get(makeProof({ url: target, ...credentials, nonce: undefined })), 'dpop-nonce');
}

const maxRounds = 5;

/** Compares nonces of the same second. With one secret they are equal. */
async function compareNonces(
  instances: readonly Instance[],
  secret: string,
  timeout: number,
): Promise<readonly Outcome[]> {
  for (let round = 0; round < maxRounds; round++) {
    const nonces = await Promise.all(
      instances.map(({ get, shown }) =>
        get(undefined).then(
          (response) => headerOf(response, 'dpop-nonce'),
          (error: unknown) => unreachable(shown, error, timeout),
        ),
      ),
    );
    const unreachableOnes = nonces.filter((nonce) => typeof nonce === 'object');
    if (unreachableOnes.length > 0) return unreachableOnes;
    const known = nonces.filter((nonce) => typeof nonce === 'string');
    const [first] = known;
    if (first === undefined || known.length < nonces.length) {
      return [skipped(`an instance sends no nonce without a proof: ${noCredentials}`)];
    }
    // A nonce contains its second and the generation of the replay store. Try again at the edge of a second.
    if (known.some((nonce) => readNonceClaim(nonce) !== readNonceClaim(first))) continue;
    const strangers = instances.filter((_, index) => known[index] !== first);
    return strangers.length === 0
      ? [ok(`${instances.length} instances send the same nonce`)]
      : [describeStrangers(strangers, instances[0], secret)];
  }
  return [
    skipped(
      `clocks or replay stores of the instances differ, so the nonces are comparable only with a proof: ${noCredentials}`,
    ),
  ];
}

function describeStrangers(strangers: readonly Instance[], first: Instance | undefined, secret: string): Outcome {
  return problem('D140', {
    seen: `${strangers.map(({ shown }) => shown).join(', ')} does not know a nonce of ${first?.shown}: ${secret} differs`,
    expected: 'each instance accepts the nonces of the others',
    fix: `Set the same ${secret} for all instances, and restart them.`,
  });
}

/** Sends a nonce of the first instance to the others. They accept it if they share its secret. */
async function checkNonces(context: DoctorContext): Promise<readonly Outcome[]> {
  const opened = openInstances(context);
  if (opened === undefined) return [skipped(fewPeers)];
  const { credentials } = context;
  const { target, instances } = opened;
  const secret = context.deployment.nameOf('dpopNonceSecret');
  if (credentials === undefined) return compareNonces(instances, secret, context.timeout);
  const nonces = await Promise.all(
    instances.map((each) =>
      getNonce(each, target, credentials).catch((error: unknown) => unreachable(each.shown, error, context.timeout)),
    ),
  );
  const unreachableOnes = nonces.filter((nonce) => typeof nonce === 'object');
  if (unreachableOnes.length > 0) return unreachableOnes;
  const [nonce] = nonces;
  if (typeof nonce !== 'string' || nonces.includes(undefined)) return [skipped('an instance sends no nonce')];
  const responses = await Promise.all(
    instances.slice(1).map(({ get }) => get(makeProof({ url: target, ...credentials, nonce }))),
  );
  const isForeign = responses.map((response) => describeRefusal(response) === failures.invalid_proof_nonce.description);
  if (!isForeign.includes(true)) return [ok(`${instances.length} instances know the nonces of each other`)];
  const strangers = instances.slice(1).filter((_, index) => isForeign[index]);
  return [describeStrangers(strangers, instances[0], secret)];
}

/** Sends one proof to two instances. Only the first may accept it. */
async function checkReplay(context: DoctorContext): Promise<readonly Outcome[]> {
  const opened = openInstances(context);
  if (opened === undefined) return [skipped(fewPeers)];
  const { credentials } = context;
  if (credentials === undefined) return [skipped(noCredentials)];
  const { target, instances } = opened;
  const [first, second] = instances as readonly [Instance, Instance]; // openInstances returns at least two
  const send = async (nonce: string | undefined) => {
    const proof = makeProof({ url: target, ...credentials, nonce });
    return { proof, response: await first.get(proof) };
  };
  try {
    let sent = await send(undefined);
    const nonce = headerOf(sent.response, 'dpop-nonce');
    if (sent.response.status === 401 && nonce !== undefined) sent = await send(nonce);
    if (sent.response.status === 401 || sent.response.status === 400) {
      return [skipped(`${first.shown} does not accept the token with its proof: ${describeRefusal(sent.response)}`)];
    }
    const again = await second.get(sent.proof);
    if (again.status === 401) {
      return /used before/.test(again.body + (headerOf(again, 'www-authenticate') ?? ''))
        ? [ok('a second instance refuses a used proof')]
        : [skipped(`${second.shown} refuses the proof for another reason: ${describeRefusal(again)}`)];
    }
    const name = context.deployment.nameOf('replayStore');
    return [
      problem('D180', {
        seen: `${first.shown} and ${second.shown} both accepted one proof`,
        expected: 'a refusal by the second',
        fix: `Share one store between all instances: ${name}=redis://host:6379`,
      }),
    ];
  } catch (error) {
    return [unreachable('an instance', error, context.timeout)];
  }
}

function describeRefusal(response: HttpResponse): string {
  const description = /error_description="([^"]*)"/.exec(headerOf(response, 'www-authenticate') ?? '')?.[1];
  return description ?? `status ${response.status}`;
}

/** Compares the audiences in the metadata of the instances (RFC 9728). */
async function checkAudiences(context: DoctorContext): Promise<readonly Outcome[]> {
  const opened = openInstances(context);
  if (opened === undefined) return [skipped(fewPeers)];
  const { timeout, peers } = context;
  const headers = { host: opened.target.host, 'x-forwarded-proto': opened.target.protocol.slice(0, -1) };
  const found = await Promise.all(
    peers.map((peer) =>
      sendRequest(new URL('/.well-known/oauth-protected-resource', peer), { timeout, headers }).then(
        ({ body }) => ({ shown: peer.origin, audience: /"resource":"([^"]*)"/.exec(body)?.[1] }),
        (error: unknown) => unreachable(peer.origin, error, timeout),
      ),
    ),
  );
  const failed = found.filter((each) => 'level' in each);
  if (failed.length > 0) return failed;
  const audiences = found.filter((each) => 'shown' in each);
  const [first] = audiences;
  const { audience } = first ?? {};
  if (audience === undefined || audiences.some((each) => each.audience === undefined)) {
    return [skipped('an instance publishes no metadata')];
  }
  const others = audiences.filter((each) => each.audience !== audience);
  if (others.length === 0) return [ok(`${audiences.length} instances have the audience ${audience}`)];
  return [
    problem('D142', {
      seen: others.map((each) => `${each.shown} has ${each.audience}`).join(', '),
      expected: `${audience}, as ${first?.shown} has`,
      fix: `Set the same ${context.deployment.nameOf('audience')} for all instances, and restart them.`,
    }),
  ];
}

export const peerChecks: readonly DoctorCheck[] = [
  { id: 'audiences', title: 'All instances have the same audience.', run: checkAudiences },
  { id: 'nonces', title: 'All instances accept the nonces of each other.', run: checkNonces },
  { id: 'replay', title: 'All instances share one replay store.', run: checkReplay },
];

export interface ProofTarget {
  readonly url: URL;
  readonly token: string;
  readonly key: KeyObject;
  readonly nonce: string | undefined;
}

const algs: ReadonlyMap<unknown, string> = new Map([
  ['P-256', 'ES256'],
  ['P-384', 'ES384'],
  ['Ed25519', 'EdDSA'],
]);

/** Reads a private key from PEM or a JWK. Throws if it is malformed or of an unsupported type. */
export function readProofKey(text: string): KeyObject {
  const key = text.trimStart().startsWith('{')
    ? createPrivateKey({ key: JSON.parse(text), format: 'jwk' })
    : createPrivateKey(text);
  if (!algs.has(createPublicKey(key).export({ format: 'jwk' }).crv))
    throw new TypeError('key: must be P-256, P-384 or Ed25519');
  return key;
}

/** Creates a proof for a GET (RFC 9449 §4.2). */
export function makeProof({ url, token, key, nonce }: ProofTarget): string {
  const { kty, crv, x, y } = createPublicKey(key).export({ format: 'jwk' });
  const alg = algs.get(crv) ?? 'ES256'; // checked when the key was read
  const claims = {
    jti: randomUUID(),
    htm: 'GET',
    htu: url.origin + url.pathname,
    iat: Math.floor(Date.now() / 1000),
    ath: hash('sha256', token, 'base64url'),
    nonce,
  };
  return signCompact({ typ: 'dpop+jwt', alg, jwk: { kty, crv, x, y } }, claims, { alg, privateKey: key });
}
