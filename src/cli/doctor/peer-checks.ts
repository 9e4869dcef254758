import { readNonceClaim } from '../../dpop/nonce.ts';
import { failures } from '../../failures.ts';
import { type CallAnswer, call, codeOf, headerOf } from './call.ts';
import type { ClientCredentials, DoctorCheck, Scene } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';
import { targetOf } from './outside-checks.ts';
import { makeProof } from './proof.ts';

const fewPeers = 'needs --peer URL at least twice';
const noCredentials = 'needs --token-file and --dpop-key-file: a bound token and its key';

/** An instance, called as if the call had come for the URL of clients. */
interface Instance {
  readonly shown: string;
  get(proof: string | undefined): Promise<CallAnswer>;
}

/** The URL that proofs are made for, and the instances behind it. */
function open(scene: Scene): { readonly target: URL; readonly instances: readonly Instance[] } | undefined {
  const [first, second] = scene.peers;
  if (first === undefined || second === undefined) return undefined;
  const target = targetOf(scene.outside ?? first, scene);
  const instances = scene.peers.map((peer) => {
    const url = new URL(target.pathname, peer);
    const get: Instance['get'] = (proof) =>
      call(url, {
        timeout: scene.timeout,
        headers: {
          host: target.host,
          'x-forwarded-proto': target.protocol.slice(0, -1),
          ...(proof !== undefined && { authorization: `DPoP ${scene.credentials?.token ?? ''}`, dpop: proof }),
        },
      });
    return { shown: peer.origin, get };
  });
  return { target, instances };
}

const unreachable = (shown: string, error: unknown): Outcome =>
  problem('D141', {
    seen: `${shown}: ${codeOf(error)}`,
    fix: 'Start the instance, or correct its address. For https, the certificate must be for that address.',
  });

/** A nonce of an instance: with any 401, or in answer to a proof without one. */
async function askNonce({ get }: Instance, target: URL, credentials: ClientCredentials): Promise<string | undefined> {
  const given = headerOf(await get(undefined), 'dpop-nonce');
  if (given !== undefined) return given;
  return headerOf(await get(makeProof({ url: target, ...credentials, nonce: undefined })), 'dpop-nonce');
}

const maxRounds = 5;

/** Compares nonces that instances have issued in one second, and with any 401: those of one secret are equal. */
async function compareNonces(instances: readonly Instance[], secret: string): Promise<readonly Outcome[]> {
  for (let round = 0; round < maxRounds; round++) {
    const nonces = await Promise.all(
      instances.map(({ get, shown }) =>
        get(undefined).then(
          (answer) => headerOf(answer, 'dpop-nonce'),
          (error: unknown) => unreachable(shown, error),
        ),
      ),
    );
    const away = nonces.filter((nonce) => typeof nonce === 'object');
    if (away.length > 0) return away;
    const known = nonces.filter((nonce) => typeof nonce === 'string');
    const [first] = known;
    if (first === undefined || known.length < nonces.length) {
      return [skipped(`an instance gives no nonce to a call without a proof; with one it may: ${noCredentials}`)];
    }
    // A nonce tells its second, and the replay store. At the edge of a second they are asked once more.
    if (known.some((nonce) => readNonceClaim(nonce) !== readNonceClaim(first))) continue;
    const strangers = instances.filter((_, index) => known[index] !== first);
    return strangers.length === 0
      ? [ok(`${instances.length} instances give the same nonce`)]
      : [describeStrangers(strangers, instances[0], secret)];
  }
  return [
    skipped(
      `clocks or replay stores of the instances differ, so nonces cannot be compared without a proof: ${noCredentials}`,
    ),
  ];
}

function describeStrangers(strangers: readonly Instance[], first: Instance | undefined, secret: string): Outcome {
  return problem('D140', {
    seen: `${strangers.map(({ shown }) => shown).join(', ')} does not know a nonce of ${first?.shown}: ${secret} differs`,
    expected: 'each instance knows the nonces of the others',
    fix: `Set the same ${secret} for all instances, and restart them.`,
  });
}

/** Shows a nonce of the first instance to the others: those that share its secret know it. */
async function checkNonces(scene: Scene): Promise<readonly Outcome[]> {
  const opened = open(scene);
  if (opened === undefined) return [skipped(fewPeers)];
  const { credentials } = scene;
  const { target, instances } = opened;
  const secret = scene.subject.nameOf('dpopNonceSecret');
  if (credentials === undefined) return compareNonces(instances, secret);
  const nonces = await Promise.all(
    instances.map((each) =>
      askNonce(each, target, credentials).catch((error: unknown) => unreachable(each.shown, error)),
    ),
  );
  const away = nonces.filter((nonce) => typeof nonce === 'object');
  if (away.length > 0) return away;
  const [nonce] = nonces;
  if (typeof nonce !== 'string' || nonces.includes(undefined)) return [skipped('an instance gives no nonce')];
  const answers = await Promise.all(
    instances.slice(1).map(({ get }) => get(makeProof({ url: target, ...credentials, nonce }))),
  );
  const isForeign = answers.map((answer) => describeRefusal(answer) === failures.invalid_proof_nonce.description);
  if (!isForeign.includes(true)) return [ok(`${instances.length} instances know the nonces of each other`)];
  const strangers = instances.slice(1).filter((_, index) => isForeign[index]);
  return [describeStrangers(strangers, instances[0], secret)];
}

/** Sends one proof to two instances: only the first may accept it. */
async function checkReplay(scene: Scene): Promise<readonly Outcome[]> {
  const opened = open(scene);
  if (opened === undefined) return [skipped(fewPeers)];
  const { credentials } = scene;
  if (credentials === undefined) return [skipped(noCredentials)];
  const { target, instances } = opened;
  const [first, second] = instances as readonly [Instance, Instance]; // there are two, as just seen
  const send = async (nonce: string | undefined) => {
    const proof = makeProof({ url: target, ...credentials, nonce });
    return { proof, answer: await first.get(proof) };
  };
  try {
    let sent = await send(undefined);
    const nonce = headerOf(sent.answer, 'dpop-nonce');
    if (sent.answer.status === 401 && nonce !== undefined) sent = await send(nonce);
    if (sent.answer.status === 401 || sent.answer.status === 400) {
      return [skipped(`${first.shown} does not accept the token with its proof: ${describeRefusal(sent.answer)}`)];
    }
    const again = await second.get(sent.proof);
    if (again.status === 401) {
      return /used before/.test(again.body + (headerOf(again, 'www-authenticate') ?? ''))
        ? [ok('a proof that one instance has accepted is refused by another')]
        : [skipped(`${second.shown} refuses the proof for another reason: ${describeRefusal(again)}`)];
    }
    const name = scene.subject.nameOf('replayStore');
    return [
      problem('D180', {
        seen: `${first.shown} and ${second.shown} both accepted one proof`,
        expected: 'the second refuses it',
        fix: `Let all instances share one store: ${name}=redis://host:6379`,
      }),
    ];
  } catch (error) {
    return [unreachable('an instance', error)];
  }
}

function describeRefusal(answer: CallAnswer): string {
  const description = /error_description="([^"]*)"/.exec(headerOf(answer, 'www-authenticate') ?? '')?.[1];
  return description ?? `status ${answer.status}`;
}

/** Checks that compare instances. */
export const peerChecks: readonly DoctorCheck[] = [
  { id: 'nonces', title: 'All instances know the nonces of each other.', run: checkNonces },
  { id: 'replay', title: 'A proof that one instance has seen is known to the others.', run: checkReplay },
];
