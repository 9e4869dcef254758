// What the page evaluates, without the page: text and the fields of its form in, explanations out.
import './web-globals.js';
import { failures } from '../../src/core/failures.ts';
import { canVerify, algorithms as known } from '../../src/core/jose/jws.ts';
import { createStaticKeySet, noKeys } from '../../src/core/keys/static-key-set.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { explain } from '../../src/explain/explain.ts';
import { explainResponse } from '../../src/explain/explained-response.ts';
import { leaveCertificateOpen, leaveUndecided } from '../../src/explain/explanation.ts';
import { audiencesOf, optionLabels, readUnverified } from '../../src/explain/facts.ts';
import { readCall } from '../../src/explain/input/explained-call.ts';
import { joinHeader } from '../../src/explain/input/input.ts';
import { readInput } from '../../src/explain/input/read-input.ts';
import { explainUnserved } from '../../src/explain/unserved.ts';
import { settleSignatures } from './web-crypto.js';

export { describeProblem } from '../../src/explain/terminal-text.ts';

/** Runs until every signature is verified: a key and a proof at most. */
const maxRuns = 4;
const words = (text) => text.split(/[\s,]+/).filter(Boolean);

/** Explains pasted text by the fields of the form. Rejects with `TypeError` if the text or a field cannot be read. */
export async function explainText(text, fields) {
  const input = readInput(text);
  if (input.kind === 'unread') throw new TypeError(input.problem);
  if (input.kind === 'log-line') return [describeLogLine(input.fields)];
  if (input.kind === 'response') return [explainResponse(input, Date.now() / 1000)];
  const explanations = [];
  for (const call of input.kind === 'calls' ? input.calls : [input]) explanations.push(await explainCall(call, fields));
  return explanations;
}

async function explainCall(input, fields) {
  const scopes = words(fields.scopes);
  const at = fields.at === '' ? undefined : Date.parse(fields.at) / 1000;
  if (Number.isNaN(at)) throw new TypeError('Time: must be a time such as 2026-01-31T12:00:00Z.');
  const { request, connection } = readCall(input, { url: fields.url || undefined });
  const policy = scopes.length === 0 ? undefined : { scopes };
  const options = { labels: optionLabels, kind: input.kind, ...(at !== undefined && { at }) };
  for (let run = 0; ; run++) {
    const { server, finish } = openServer(input, fields);
    const explanation = finish(await explain(server, request, policy, connection, options));
    if (run < maxRuns && (await settleSignatures()) > 0) continue;
    const { malformed } = input;
    return malformed === undefined ? explanation : explainUnserved(400, request, explanation, malformed);
  }
}

/** Opens the rules of the form. Without issuer and audience, the claims of the token are only shown. */
function openServer({ headers }, { issuer, keys, ...fields }) {
  const { header, claims } = readUnverified((joinHeader(headers, 'authorization') ?? '').replace(/^\S+ +/, ''));
  const audience = words(fields.audience);
  const algorithms = words(fields.algorithms);
  const isDecodeOnly = issuer === '' || audience.length === 0;
  const named = audiencesOf(claims).filter((each) => each !== '');
  const { iss } = claims;
  const server = createResourceServer({
    issuers: [{ issuer: issuer || (typeof iss === 'string' && iss !== '' ? iss : 'none'), keys: readKeys(keys) }],
    audience: audience.length > 0 ? audience : named.length > 0 ? named : 'none',
    ...(algorithms.length > 0 && { algorithms }),
    ...(isDecodeOnly && known.has(header.alg) && canVerify(header.alg) && { algorithms: [header.alg] }),
    dpop: { replay: 'off' },
  });
  return { server, finish: isDecodeOnly ? leaveUndecided : leaveCertificateOpen };
}

function readKeys(text) {
  if (text === '') return noKeys;
  try {
    return createStaticKeySet(JSON.parse(text));
  } catch {
    throw new TypeError('Keys: must be a JWK set with at least one usable key.');
  }
}

function describeLogLine(fields) {
  const reason = String(fields.reason ?? fields.would_refuse);
  const fix = Object.hasOwn(failures, reason) ? failures[reason].fix : 'This reason does not exist in this version.';
  const label = 'Reason in the log line';
  return { verdict: 'refused', reason, checks: [{ id: 'log', group: 'log', label, verdict: 'fail', fix }] };
}
