import { readNonceClaim } from '../../core/dpop/nonce.ts';
import { failures } from '../../core/failures.ts';
import { createProof, type KeyPair } from '../../core/jose/signed-proof.ts';
import type { AnyResponse } from '../../core/outbound/outbound.ts';
import { ProviderError } from '../../core/outbound/provider-error.ts';
import { type DoctorContext, describeError, readChallenge } from './context.ts';
import { type Finding, ok, problem, skipped } from './finding.ts';
import { targetOf } from './url-check.ts';

const noCredentials = 'needs --token-file and --dpop-key-file: a bound token and its key';

/** An instance. Its requests have the Host of the clients' URL. Rejects with `ProviderError`. */
interface Instance {
  readonly shown: string;
  get(headers?: Readonly<Record<string, string>>): Promise<AnyResponse>;
}

/** Creates the headers of a GET with a new proof. */
type Prove = (nonce?: string) => Readonly<Record<string, string>>;

/** Compares the nonces and the replay stores of the instances. */
export async function checkDpop(context: DoctorContext): Promise<readonly Finding[]> {
  const { outside, peers, token, proofKey, request } = context;
  const [first] = peers;
  if (first === undefined || peers.length < 2) return [skipped('dpop', 'needs --peer URL at least twice')];
  const target = targetOf(outside ?? first, context);
  const forwarded = { host: target.host, 'x-forwarded-proto': target.protocol.slice(0, -1) };
  const instances = peers.map(
    (peer): Instance => ({
      shown: peer.origin,
      async get(headers) {
        const response = await request(new URL(target.pathname, peer), { ...forwarded, ...headers });
        if (response instanceof ProviderError) throw response;
        return response;
      },
    }),
  );
  const responses = await Promise.all(instances.map(({ get }) => get().catch((error: unknown) => error)));
  const failed = responses.flatMap((response, index) => {
    if (!(response instanceof Error)) return [];
    const seen = `${instances[index]?.shown}: ${describeError(response)}`;
    return [problem('instance_unreachable', { seen, fix: 'Start the instance, or correct its address.' })];
  });
  if (failed.length > 0) return failed;
  const prove = token === undefined || proofKey === undefined ? undefined : createProve(target, token, proofKey);
  if (prove === undefined) return [await compareNonces(instances, context), skipped('dpop', noCredentials)];
  return [await checkNonces(instances, prove, context), await checkReplay(instances, prove, context)];
}

const createProve =
  (url: URL, token: string, key: KeyPair): Prove =>
  (nonce) => ({ authorization: `DPoP ${token}`, dpop: createProof(key, { url, token, nonce }, Date.now() / 1000) });

const nonceOf = ({ headers }: AnyResponse): string | undefined => headers.get('dpop-nonce') ?? undefined;
const maxRounds = 5;

/** Compares nonces of the same second. With one secret they are equal. */
async function compareNonces(instances: readonly Instance[], context: DoctorContext): Promise<Finding> {
  for (let round = 0; round < maxRounds; round++) {
    const nonces = await Promise.all(instances.map(async ({ get }) => nonceOf(await get()) ?? ''));
    const [first = ''] = nonces;
    if (nonces.includes('')) return skipped('dpop', `an instance sends no nonce without a proof: ${noCredentials}`);
    // A nonce contains its second and the generation of the replay store. Try again at the edge of a second.
    if (nonces.some((nonce) => readNonceClaim(nonce) !== readNonceClaim(first))) continue;
    return describeNonces(instances, (index) => nonces[index] === first, context);
  }
  return skipped('dpop', `clocks or replay stores of the instances differ: ${noCredentials}`);
}

/** Sends a nonce of the first instance to the others. They accept it if they share its secret. */
async function checkNonces(instances: readonly Instance[], prove: Prove, context: DoctorContext): Promise<Finding> {
  // Any 401 has a nonce, or the refusal of a proof without one.
  const nonces = await Promise.all(
    instances.map(async ({ get }) => nonceOf(await get()) ?? nonceOf(await get(prove()))),
  );
  const [nonce] = nonces;
  if (nonces.includes(undefined)) return skipped('dpop', 'an instance sends no nonce');
  const responses = await Promise.all(instances.map(({ get }) => get(prove(nonce))));
  const unknown = failures.invalid_proof_nonce.description;
  const isKnown = responses.map((response) => readChallenge(response, 'error_description') !== unknown);
  return describeNonces(instances, (index) => isKnown[index] === true, context);
}

function describeNonces(
  instances: readonly Instance[],
  isKnown: (index: number) => boolean,
  { deployment }: DoctorContext,
): Finding {
  const strangers = instances.filter((_, index) => !isKnown(index)).map(({ shown }) => shown);
  if (strangers.length === 0) return ok('dpop', `${instances.length} instances know the nonces of each other`);
  const secret = deployment.nameOf('dpopNonceSecret');
  return problem('nonces_differ', {
    seen: `${strangers.join(', ')} does not know a nonce of ${instances[0]?.shown}: ${secret} differs`,
    expected: 'each instance accepts the nonces of the others',
    fix: `Set the same ${secret} for all instances, and restart them.`,
  });
}

/** Sends one proof to two instances. Only the first may accept it. */
async function checkReplay(
  [first, second]: readonly Instance[],
  prove: Prove,
  { deployment }: DoctorContext,
): Promise<Finding> {
  if (first === undefined || second === undefined) return skipped('dpop', 'needs --peer URL at least twice');
  let proven = prove();
  let response = await first.get(proven);
  const nonce = nonceOf(response);
  if (response.status === 401 && nonce !== undefined) {
    proven = prove(nonce);
    response = await first.get(proven);
  }
  const describe = (refused: AnyResponse): string =>
    readChallenge(refused, 'error_description') ?? `status ${refused.status}`;
  if (response.status === 401 || response.status === 400) {
    const cause = 'portcullis explain --file with the token says why';
    return skipped('dpop', `${first.shown} refuses the token or its proof: ${describe(response)}; ${cause}`);
  }
  const again = await second.get(proven);
  if (again.status === 401) {
    return describe(again) === failures.proof_replayed.description
      ? ok('dpop', 'a second instance refuses a used proof')
      : skipped('dpop', `${second.shown} refuses the proof for another reason: ${describe(again)}`);
  }
  return problem('replay_not_shared', {
    seen: `${first.shown} and ${second.shown} both accepted one proof`,
    expected: 'a refusal by the second',
    fix: `Share one store between all instances: ${deployment.nameOf('replayStore')}=redis://host:6379`,
  });
}
