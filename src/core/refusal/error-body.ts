/** Content of an error body: nothing of the request. */
export interface ErrorReport {
  /** HTTP status. */
  readonly status: number;
  /** OAuth error code; absent for errors of HTTP only, such as 404. */
  readonly error?: string;
  /** One fixed sentence. */
  readonly description: string;
}

/** A body and its media type. */
export interface ErrorBody {
  /** Value of `Content-Type`. */
  readonly contentType: string;
  /** The complete text. */
  readonly body: string;
}

/** Turns a report into a body; the four below, or the reader's own. */
export type ErrorBodyFormat = (report: ErrorReport) => ErrorBody;

/** The reason phrases of the statuses in use (RFC 9110 §15, RFC 6585 §5). */
export const statusPhrases: ReadonlyMap<number, string> = new Map([
  [400, 'Bad Request'],
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'Not Found'],
  [405, 'Method Not Allowed'],
  [408, 'Request Timeout'],
  [413, 'Content Too Large'],
  [417, 'Expectation Failed'],
  [421, 'Misdirected Request'],
  [431, 'Request Header Fields Too Large'],
  [500, 'Internal Server Error'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [504, 'Gateway Timeout'],
]);

const json = (value: object): ErrorBody => ({ contentType: 'application/json', body: JSON.stringify(value) });

/** An access that no token would give has no challenge to point to. */
const flatDetails = (error: string): string =>
  error === 'access_denied' ? 'No access token changes this.' : 'The WWW-Authenticate header says what is needed.';

export const errorBodyFormats = {
  /** `{"detail": {"error", "error_description"}}`; `{"detail": "Not Found"}` without an error code. */
  detail: ({ error, description }) =>
    json({ detail: error === undefined ? description : { error, error_description: description } }),
  /** 401 and 403 `{"error", "message", "details"}`, all strings; other statuses `{"detail"}`. */
  flat: ({ status, error = 'unauthorized', description }) =>
    status === 401 || status === 403
      ? json({ error, message: description, details: flatDetails(error) })
      : json({ detail: description }),
  message: ({ description }) => json({ Message: description }),
  /** RFC 9457 problem details. */
  problem: ({ status, error, description }) => ({
    contentType: 'application/problem+json',
    body: JSON.stringify({ type: 'about:blank', title: statusPhrases.get(status), status, detail: description, error }),
  }),
} as const satisfies Readonly<Record<string, ErrorBodyFormat>>;
