import { STATUS_CODES } from 'node:http';
import { describe, expect, it } from 'vitest';
import { failures } from '../../../src/core/failures.ts';
import { type ErrorReport, errorBodyFormats, statusPhrases } from '../../../src/core/refusal/error-body.ts';

const expired: ErrorReport = { status: 401, error: 'invalid_token', description: 'It has expired.' };
const scope: ErrorReport = { status: 403, error: 'insufficient_scope', description: 'It lacks a scope.' };
const denial: ErrorReport = { status: 403, error: 'access_denied', description: 'Nobody.' };
const repeated: ErrorReport = { status: 400, error: 'invalid_request', description: 'Two headers.' };
const unavailable: ErrorReport = { status: 503, error: 'temporarily_unavailable', description: 'No keys.' };
const notFound: ErrorReport = { status: 404, description: 'Not Found' };
const details = expect.stringMatching(/^[A-Z].*\.$/);

type Format = keyof typeof errorBodyFormats;

describe('forms of error bodies', () => {
  it.each<[Format, ErrorReport, object]>([
    ['detail', expired, { detail: { error: 'invalid_token', error_description: 'It has expired.' } }],
    ['detail', scope, { detail: { error: 'insufficient_scope', error_description: 'It lacks a scope.' } }],
    ['detail', repeated, { detail: { error: 'invalid_request', error_description: 'Two headers.' } }],
    ['detail', unavailable, { detail: { error: 'temporarily_unavailable', error_description: 'No keys.' } }],
    ['detail', notFound, { detail: 'Not Found' }],
    ['flat', expired, { error: 'invalid_token', message: 'It has expired.', details }],
    ['flat', scope, { error: 'insufficient_scope', message: 'It lacks a scope.', details }],
    ['flat', denial, { error: 'access_denied', message: 'Nobody.', details: 'No access token changes this.' }],
    ['flat', { status: 401, description: 'Needed.' }, { error: 'unauthorized', message: 'Needed.', details }],
    ['flat', repeated, { detail: 'Two headers.' }],
    ['flat', unavailable, { detail: 'No keys.' }],
    ['flat', notFound, { detail: 'Not Found' }],
    ['message', expired, { Message: 'It has expired.' }],
    ['message', notFound, { Message: 'Not Found' }],
    [
      'problem',
      expired,
      { type: 'about:blank', title: 'Unauthorized', status: 401, detail: 'It has expired.', error: 'invalid_token' },
    ],
    ['problem', notFound, { type: 'about:blank', title: 'Not Found', status: 404, detail: 'Not Found' }],
  ])('%s of %j → %j', (format, report, body) =>
    expect(JSON.parse(errorBodyFormats[format](report).body)).toEqual(body),
  );

  it.each<[Format, string]>([
    ['detail', 'application/json'],
    ['flat', 'application/json'],
    ['message', 'application/json'],
    ['problem', 'application/problem+json'],
  ])('%s → media type %s, whatever the status', (format, contentType) => {
    for (const report of [expired, repeated, notFound]) {
      expect(errorBodyFormats[format](report).contentType).toBe(contentType);
    }
  });

  it('every phrase → the phrase of RFC 9110', () =>
    expect([...statusPhrases]).toEqual(
      [...statusPhrases.keys()].map((status) => [status, status === 413 ? 'Content Too Large' : STATUS_CODES[status]]),
    ));

  it('every status of the table of reasons → has a phrase', () => {
    for (const { status } of Object.values(failures)) expect(statusPhrases.get(status)).toMatch(/^[A-Z]/);
  });
});
