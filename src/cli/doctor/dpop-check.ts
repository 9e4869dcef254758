import { readNonceClaim } from '../../core/dpop/nonce.ts';
import { failures } from '../../core/failures.ts';
import { createProof } from '../../core/jose/signed-proof.ts';
import type { AnyResponse } from '../../core/outbound/outbound.ts';
import { type DoctorContext, describeError, type Findings, readChallenge } from './context.ts';
import { type Finding, ok, problem, skipped } from './finding.ts';
import { targetOf } from './url-check.ts';

const noCredentials = 'needs --token-file and --dpop-key-file: a bound token and its key';

/** Sends a GET to an instance, with the Host of the clients' URL. Rejects with `ProviderError`. */
type Get = (headers?: Readonly<Record<string, string>>) => Promise<AnyResponse>;

/** Creates the headers of a GET with a new proof. */
type Prove = (nonce?: string) => Readonly<Record<string, string>>;

export async function* checkDpop(context: DoctorContext): Findings {
  const { outside, peers, token, proofKey, request, deployment } = context;
  const [one, other] = peers;
  if (one === undefined || other === undefined) return yield skipped('dpop', 'needs --peer URL at least twice');
  const url = targetOf(outside ?? one, context);
  const forwarded = { host: url.host, 'x-forwarded-proto': url.protocol.slice(0, -1) };
  const open = (peer: URL): Get => {
    const address = new URL(url.pathname, peer);
    return (headers) => request(address, { ...forwarded, ...headers });
  };
  const gets = peers.map(open);
  const errors = await Promise.all(gets.map((get) => get().then(() => undefined, describeError)));
  const origins = peers.map(({ origin }) => origin);
  const fix = 'Start the instance, or correct its address.';
  const failed = errors.flatMap((error, index) =>
    error === undefined ? [] : [problem('instance_unreachable', `${origins[index]}: ${error}`, fix)],
  );
  if (failed.length > 0) return yield* failed;
  if (token === undefined || proofKey === undefined) {
    yield describeNonces(await compareNonces(gets), origins, deployment);
    return yield skipped('dpop', noCredentials);
  }
  const prove: Prove = (nonce) => ({
    authorization: `DPoP ${token}`,
    dpop: createProof(proofKey, { url, token, nonce }, Date.now() / 1000),
  });
  yield describeNonces(await sendNonces(gets, prove), origins, deployment);
  const proven = prove(nonceOf(await open(one)(prove())));
  const first = await open(one)(proven);
  const second = await open(other)(proven);
  const says = 'portcullis explain --file with the token says why';
  // A used proof is refused last, after every other reason.
  if (isRefused(first))
    yield skipped('dpop', `${one.origin} refuses the token or its proof: ${describe(first)}; ${says}`);
  else if (describe(second) === failures.proof_replayed.description)
    yield ok('dpop', 'a second instance refuses a used proof');
  else if (isRefused(second))
    yield skipped('dpop', `${other.origin} refuses the proof for another reason: ${describe(second)}`);
  else
    yield problem('replay_not_shared', `${one.origin} and ${other.origin} both accepted one proof`, {
      expected: 'a refusal by the second',
      fix: `Share one store between all instances: ${deployment.write('replayStore', 'redis://host:6379')}`,
    });
}

/** `known`: which instances know the nonces of the first, or the reason that this is open. */
function describeNonces(known: Known, origins: readonly string[], { write }: DoctorContext['deployment']): Finding {
  if (typeof known === 'string') return skipped('dpop', known);
  const strangers = origins.filter((_, index) => known[index] === false);
  if (strangers.length === 0) return ok('dpop', `${origins.length} instances know the nonces of each other`);
  const secret = write('dpopNonceSecret');
  return problem('nonces_differ', `${strangers.join(', ')} does not know a nonce of ${origins[0]}: ${secret} differs`, {
    expected: 'each instance accepts the nonces of the others',
    fix: `Set the same ${secret} for all instances, and restart them.`,
  });
}

type Known = readonly boolean[] | string;

const isRefused = ({ status }: AnyResponse): boolean => [400, 401, 403].includes(status) || status >= 500;
const nonceOf = ({ headers }: AnyResponse): string | undefined => headers.get('dpop-nonce') ?? undefined;
const describe = (response: AnyResponse): string =>
  readChallenge(response, 'error_description') ?? `status ${response.status}`;
const maxRounds = 5;

/** Compares nonces of the same second, which are equal with one secret. */
async function compareNonces(gets: readonly Get[]): Promise<Known> {
  for (let round = 0; round < maxRounds; round++) {
    const nonces = await Promise.all(gets.map(async (get) => nonceOf(await get()) ?? ''));
    if (nonces.includes('')) return `an instance sends no nonce without a proof: ${noCredentials}`;
    // A nonce contains its second and the generation of the replay store. Try again at the edge of a second.
    if (new Set(nonces.map(readNonceClaim)).size === 1) return nonces.map((nonce) => nonce === nonces[0]);
  }
  return `clocks or replay stores of the instances differ: ${noCredentials}`;
}

/** Sends a nonce of the first instance to the others, which accept it if they share its secret. */
async function sendNonces(gets: readonly Get[], prove: Prove): Promise<Known> {
  // Any 401 has a nonce, or the refusal of a proof without one.
  const nonces = await Promise.all(gets.map(async (get) => nonceOf(await get()) ?? nonceOf(await get(prove()))));
  if (nonces.includes(undefined)) return 'an instance sends no nonce';
  const responses = await Promise.all(gets.map((get) => get(prove(nonces[0]))));
  return responses.map((response) => describe(response) !== failures.invalid_proof_nonce.description);
}
