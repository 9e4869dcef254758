// The page that explains a refused request in the browser. Nothing leaves the page: its policy forbids every connection.
import { describeProblem, explainText } from './explained-text.js';

const byId = (id) => document.getElementById(id);
const fieldNames = ['issuer', 'audience', 'algorithms', 'scopes', 'url', 'at', 'keys'];

byId('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const fields = Object.fromEntries(fieldNames.map((id) => [id, byId(id).value.trim()]));
  explainText(byId('input').value, fields).then(show, (error) =>
    showProblem(error instanceof TypeError ? error.message : 'The input cannot be explained.'),
  );
});
byId('form').addEventListener('reset', () => byId('result').replaceChildren());

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
  const advice = 'With issuer, audience and keys, under Expected values, the page decides.';
  const open = verdict === 'undecided' && failed[0]?.id !== 'response' ? [element('p', advice)] : [];
  return [element('h2', headline, verdict), ...open, ...failed.map(describeFailure), details];
}

function describeFailure(check) {
  const expected = [check.expected ?? []].flat();
  const causes = check.causes ?? [];
  const fixes = causes.length > 0 ? causes.map(({ fix }) => fix) : [check.fix ?? []].flat();
  const row = (label, value) => [element('dt', label), element('dd', value)];
  return element('section', [
    // A response has reasons that are possible.
    element('h3', (check.id !== 'response' && describeProblem(check)) || (check.label ?? check.reason ?? check.id)),
    element('dl', [
      ...causes.flatMap(({ id, certainty }) => row('cause', [element('code', id), ` (${certainty})`])),
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
