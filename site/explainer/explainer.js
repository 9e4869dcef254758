// The page that explains a refused request in the browser. Nothing leaves the page: its policy forbids every connection.
import './web-globals.js';
import { failures } from '../../src/core/failures.ts';
import { algorithms } from '../../src/core/jose/jws.ts';
import { createStaticKeySet } from '../../src/core/keys/static-key-set.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { explain } from '../../src/explain/explain.ts';
import { explainResponse } from '../../src/explain/explained-response.ts';
import { leaveCertificateOpen, leaveUndecided } from '../../src/explain/explanation.ts';
import { audiencesOf, optionLabels, readUnverified } from '../../src/explain/facts.ts';
import { readCall } from '../../src/explain/input/explained-call.ts';
import { joinHeader } from '../../src/explain/input/input.ts';
import { readInput } from '../../src/explain/input/read-input.ts';
import { settleSignatures } from './web-crypto.js';

const noKeys = {
  find: () => undefined,
  generation: 0,
  has: () => false,
  usable: () => false,
  refetch: () => undefined,
};
/** Runs until every signature is verified: a key and a proof at most. */
const maxRuns = 4;
const byId = (id) => document.getElementById(id);
const readField = (id) => byId(id).value.trim();
const words = (text) => text.split(/[\s,]+/).filter(Boolean);

byId('form').addEventListener('submit', (event) => {
  event.preventDefault();
  explainInput().then(show, (error) =>
    showProblem(error instanceof TypeError ? error.message : 'The input cannot be explained.'),
  );
});
byId('form').addEventListener('reset', () => byId('result').replaceChildren());

async function explainInput() {
  const input = readInput(byId('input').value);
  if (input.kind === 'unread') throw new TypeError(input.problem);
  if (input.kind === 'log-line') return [describeLogLine(input.fields)];
  if (input.kind === 'response') return [explainResponse(input, Date.now() / 1000)];
  const explanations = [];
  for (const call of input.kind === 'calls' ? input.calls : [input]) explanations.push(await explainCall(call));
  return explanations;
}

async function explainCall(input) {
  const { server, finish } = openServer(input);
  const scopes = words(readField('scopes'));
  const at = readField('at') === '' ? undefined : Date.parse(readField('at')) / 1000;
  if (Number.isNaN(at)) throw new TypeError('Time: must be a time such as 2026-01-31T12:00:00Z.');
  const { request, connection } = readCall(input, { url: readField('url') || undefined });
  const policy = scopes.length === 0 ? undefined : { scopes };
  const options = { labels: optionLabels, kind: input.kind, ...(at !== undefined && { at }) };
  for (let run = 0; ; run++) {
    const explanation = finish(await explain(server, request, policy, connection, options));
    if (run === maxRuns || (await settleSignatures()) === 0) return explanation;
  }
}

/** Opens the rules of the form. Without issuer and audience, the claims of the token are only shown. */
function openServer({ headers }) {
  const { header, claims } = readUnverified((joinHeader(headers, 'authorization') ?? '').replace(/^\S+ +/, ''));
  const [issuer, audience] = [readField('issuer'), words(readField('audience'))];
  const isDecodeOnly = issuer === '' || audience.length === 0;
  const named = audiencesOf(claims).filter((each) => each !== '');
  const { alg } = header;
  const { iss } = claims;
  const server = createResourceServer({
    issuers: [{ issuer: issuer || (typeof iss === 'string' && iss !== '' ? iss : 'none'), keys: readKeys() }],
    audience: audience.length > 0 ? audience : named.length > 0 ? named : 'none',
    ...(algorithms.has(alg) && { algorithms: [alg] }),
    dpop: { replay: 'off' },
  });
  return { server, finish: isDecodeOnly ? leaveUndecided : leaveCertificateOpen };
}

function readKeys() {
  const text = readField('keys');
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

function element(name, content = '', className = '') {
  const made = document.createElement(name);
  if (className !== '') made.className = className;
  made.append(...[content].flat());
  return made;
}

const verdictWords = {
  pass: 'ok',
  fail: 'failed',
  follows: 'failed',
  blocked: 'not tried',
  skipped: 'not required',
  unknown: 'unknown',
};

function show(explanations) {
  byId('result').replaceChildren(...explanations.flatMap(describe));
  byId('result').focus();
}

function describe({ verdict, reason, status, checks }) {
  // A response names reasons that are possible: each has its fix.
  const failed = checks.filter((check) => check.verdict === 'fail' || check.id === 'response');
  const headline = [verdict, reason, status].filter(Boolean).join(' · ');
  const table = element('table', [
    element('caption', 'Every check, in its order'),
    ...checks.map((check) =>
      element('tr', [
        element('th', check.label ?? check.reason ?? check.id),
        element('td', verdictWords[check.verdict], check.verdict),
        element('td', [check.seen ?? '', check.why === undefined ? '' : ` (${check.why})`]),
      ]),
    ),
  ]);
  const details = element('details', [element('summary', `${checks.length} checks`), table]);
  return [element('h2', headline, verdict), ...failed.map(describeFailure), details];
}

function describeFailure(check) {
  const expected = [check.expected ?? []].flat();
  const causes = check.causes ?? [];
  const fixes = causes.length > 0 ? causes.map(({ fix }) => fix) : [check.fix ?? []].flat();
  const row = (label, value) => [element('dt', label), element('dd', value)];
  return element('section', [
    element('h3', check.label ?? check.reason ?? check.id),
    element('dl', [
      ...causes.flatMap(({ note, certainty }) => (note === undefined ? [] : row('cause', `${note} (${certainty})`))),
      ...(expected.length === 0 ? [] : row('expected', element('code', expected.join(' or ')))),
      ...(check.seen === undefined ? [] : row('received', element('code', check.seen))),
      ...fixes.flatMap((fix) => row('fix', fix)),
    ]),
  ]);
}

function showProblem(message) {
  byId('result').replaceChildren(element('h2', message, 'problem'));
  byId('result').focus();
}
