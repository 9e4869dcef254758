import { readNonceClaim } from '../../core/dpop/nonce.ts';
import { failures } from '../../core/failures.ts';
import { createProof } from '../../core/jose/signed-proof.ts';
import type { ClientCredentials, DoctorCheck, DoctorContext, Outcomes } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';
import { targetOf } from './outside-checks.ts';
import { describeError, type HttpResponse, headerOf, sendRequest } from './requests.ts';

const noCredentials = 'needs --token-file and --dpop-key-file: a bound token and its key';

/** An instance. Its requests have the Host of the clients' URL. */
interface Instance {
  readonly shown: string;
  get(headers?: Readonly<Record<string, string>>, path?: string): Promise<HttpResponse>;
}

interface Peers extends DoctorContext {
  readonly target: URL;
  readonly instances: readonly [Instance, Instance, ...Instance[]];
}

/** Runs a check with the instances, if there are at least two. */
function withInstances(check: (peers: Peers) => Promise<Outcomes>): DoctorCheck['run'] {
  return async (context) => {
    const { outside, peers, timeout } = context;
    const [first, second, ...others] = peers;
    if (first === undefined || second === undefined) return skipped('needs --peer URL at least twice');
    const target = targetOf(outside ?? first, context);
    const forwarded = { host: target.host, 'x-forwarded-proto': target.protocol.slice(0, -1) };
    const open = (peer: URL): Instance => ({
      shown: peer.origin,
      get: (headers, path = target.pathname) =>
        sendRequest(new URL(path, peer), { timeout, headers: { ...forwarded, ...headers } }),
    });
    return check({ ...context, target, instances: [open(first), open(second), ...others.map(open)] });
  };
}

const unreachable = (shown: string, error: unknown, timeout: number): Outcome =>
  problem('D141', {
    seen: `${shown}: ${describeError(error, timeout)}`,
    fix: 'Start the instance, or correct its address. For https, the certificate must be for that address.',
  });

/** Queries every instance at the same time. */
async function queryAll<Value>(
  { instances, timeout }: Peers,
  query: (instance: Instance) => Promise<Value>,
): Promise<{ readonly values: readonly Value[]; readonly failed: readonly Outcome[] }> {
  const settled = instances.map((instance) =>
    query(instance).then(
      (value) => ({ value }),
      (error: unknown) => ({ failure: unreachable(instance.shown, error, timeout) }),
    ),
  );
  const results = await Promise.all(settled);
  return {
    values: results.flatMap((result) => ('value' in result ? [result.value] : [])),
    failed: results.flatMap((result) => ('failure' in result ? [result.failure] : [])),
  };
}

const nonceOf = (response: HttpResponse): string | undefined => headerOf(response, 'dpop-nonce');

const maxRounds = 5;

/** Compares nonces of the same second. With one secret they are equal. */
async function compareNonces(peers: Peers): Promise<Outcomes> {
  const { instances } = peers;
  for (let round = 0; round < maxRounds; round++) {
    const { values, failed } = await queryAll(peers, async ({ get }) => nonceOf(await get()));
    if (failed.length > 0) return failed;
    const [first] = values;
    const known = values.filter((nonce) => nonce !== undefined);
    if (first === undefined || known.length < values.length) {
      return skipped(`an instance sends no nonce without a proof: ${noCredentials}`);
    }
    // A nonce contains its second and the generation of the replay store. Try again at the edge of a second.
    if (known.some((nonce) => readNonceClaim(nonce) !== readNonceClaim(first))) continue;
    const strangers = instances.filter((_, index) => known[index] !== first);
    return strangers.length === 0
      ? ok(`${instances.length} instances send the same nonce`)
      : describeStrangers(strangers, peers);
  }
  return skipped(
    `clocks or replay stores of the instances differ, so the nonces are comparable only with a proof: ${noCredentials}`,
  );
}

function describeStrangers(strangers: readonly Instance[], { instances: [first], deployment }: Peers): Outcome {
  const secret = deployment.nameOf('dpopNonceSecret');
  return problem('D140', {
    seen: `${strangers.map(({ shown }) => shown).join(', ')} does not know a nonce of ${first.shown}: ${secret} differs`,
    expected: 'each instance accepts the nonces of the others',
    fix: `Set the same ${secret} for all instances, and restart them.`,
  });
}

/** Sends a nonce of the first instance to the others. They accept it if they share its secret. */
async function checkNonces(peers: Peers): Promise<Outcomes> {
  const { credentials, target, instances } = peers;
  if (credentials === undefined) return compareNonces(peers);
  const prove = (nonce?: string) => proveFor(credentials, target, nonce);
  // Any 401 has a nonce, or the refusal of a proof without one.
  const { values, failed } = await queryAll(
    peers,
    async ({ get }) => nonceOf(await get()) ?? nonceOf(await get(prove())),
  );
  if (failed.length > 0) return failed;
  const [nonce] = values;
  if (values.includes(undefined)) return skipped('an instance sends no nonce');
  const responses = await Promise.all(instances.slice(1).map(({ get }) => get(prove(nonce))));
  const strangers = instances.slice(1).filter((_, index) => {
    const response = responses[index];
    return response !== undefined && describeRefusal(response) === failures.invalid_proof_nonce.description;
  });
  return strangers.length === 0
    ? ok(`${instances.length} instances know the nonces of each other`)
    : describeStrangers(strangers, peers);
}

/** Sends one proof to two instances. Only the first may accept it. */
async function checkReplay({ credentials, target, instances, deployment, timeout }: Peers): Promise<Outcomes> {
  if (credentials === undefined) return skipped(noCredentials);
  const [first, second] = instances;
  try {
    let proven = proveFor(credentials, target, undefined);
    let response = await first.get(proven);
    const nonce = nonceOf(response);
    if (response.status === 401 && nonce !== undefined) {
      proven = proveFor(credentials, target, nonce);
      response = await first.get(proven);
    }
    if (response.status === 401 || response.status === 400) {
      return skipped(`${first.shown} does not accept the token with its proof: ${describeRefusal(response)}`);
    }
    const again = await second.get(proven);
    if (again.status === 401) {
      return /used before/.test(again.body + (headerOf(again, 'www-authenticate') ?? ''))
        ? ok('a second instance refuses a used proof')
        : skipped(`${second.shown} refuses the proof for another reason: ${describeRefusal(again)}`);
    }
    return problem('D180', {
      seen: `${first.shown} and ${second.shown} both accepted one proof`,
      expected: 'a refusal by the second',
      fix: `Share one store between all instances: ${deployment.nameOf('replayStore')}=redis://host:6379`,
    });
  } catch (error) {
    return unreachable('an instance', error, timeout);
  }
}

function describeRefusal(response: HttpResponse): string {
  const description = /error_description="([^"]*)"/.exec(headerOf(response, 'www-authenticate') ?? '')?.[1];
  return description ?? `status ${response.status}`;
}

/** Compares the audiences in the metadata of the instances (RFC 9728). */
async function checkAudiences(peers: Peers): Promise<Outcomes> {
  const { values, failed } = await queryAll(peers, async ({ shown, get }) => {
    const { body } = await get({}, '/.well-known/oauth-protected-resource');
    return { shown, audience: /"resource":"([^"]*)"/.exec(body)?.[1] };
  });
  if (failed.length > 0) return failed;
  const [first] = values;
  const audience = first?.audience;
  if (values.some((each) => each.audience === undefined)) return skipped('an instance publishes no metadata');
  const others = values.filter((each) => each.audience !== audience);
  if (others.length === 0) return ok(`${values.length} instances have the audience ${audience}`);
  return problem('D142', {
    seen: others.map((each) => `${each.shown} has ${each.audience}`).join(', '),
    expected: `${audience}, as ${first?.shown} has`,
    fix: `Set the same ${peers.deployment.nameOf('audience')} for all instances, and restart them.`,
  });
}

export const peerChecks: readonly DoctorCheck[] = [
  { id: 'audiences', title: 'All instances have the same audience.', run: withInstances(checkAudiences) },
  { id: 'nonces', title: 'All instances accept the nonces of each other.', run: withInstances(checkNonces) },
  { id: 'replay', title: 'All instances share one replay store.', run: withInstances(checkReplay) },
];

/** Creates the headers of a GET with a new proof. */
function proveFor({ token, key }: ClientCredentials, url: URL, nonce: string | undefined) {
  return { authorization: `DPoP ${token}`, dpop: createProof(key, { url, token, nonce }, Date.now() / 1000) };
}
