/**
 * Expressions that the documents, comments, messages and test titles of this project avoid.
 *
 * `code` applies to comments and to strings of three words or more, `docs` to Markdown pages, `title` to test titles.
 * A pattern with `docCommentsOnly` applies to doc comments and titles, not to other comments or strings.
 *
 * @typedef {object} Pattern
 * @property {RegExp} pattern
 * @property {string} write The expression to use.
 * @property {readonly ('code' | 'docs' | 'title')[]} kinds
 * @property {boolean} [docCommentsOnly]
 */

/** @type {(pattern: RegExp, write: string) => Pattern} */
const everywhere = (pattern, write) => ({ pattern, write, kinds: ['code', 'docs', 'title'] });

/** @type {readonly Pattern[]} */
export const patterns = [
  {
    pattern: /^(what|who|whose|whom|how|where|why|which|when)\b/gi,
    write: 'a noun phrase or a verb',
    kinds: ['code', 'title'],
    docCommentsOnly: true,
  },
  { pattern: /^whether\b/gi, write: '"True if" or "Reports whether"', kinds: ['code', 'title'], docCommentsOnly: true },
  {
    pattern: /^(of|by|that|those|told|as|from|under|in|the same)\b/gi,
    write: 'the noun',
    kinds: ['code'],
    docCommentsOnly: true,
  },
  everywhere(/(?<!here )\b(is|are|was|were|be) (no (?!longer|more|less)|none\b(?! of))/gi, 'is not a'),
  everywhere(/\b(nobody|somebody|anybody|everybody|whoever)\b/gi, 'no client, anyone who'),
  everywhere(/\b(an?|one|any|no|each|another) text\b|\btexts\b/gi, 'string'),
  everywhere(/\b(that|those) of\b/gi, 'the noun again'),
  everywhere(/(^|[.:;] )(one|those) (that|which|who)\b/gi, 'the noun again'),
  everywhere(/\bheld (against|to (its|their|the))\b|\bholds? (\S+ ){1,4}against\b/gi, 'compare with'),
  everywhere(/\btold\b(?! apart)|\btells? (of|what|how|when|whether)\b/gi, 'called, logged'),
  everywhere(/\b(demands|demanded|wants|wanted)\b/gi, 'require'),
  everywhere(/\bstand(s|ing)?\b(?! (for|alone))/gi, 'is, appears'),
  everywhere(/\bin (the )?place of\b/gi, 'instead of'),
  everywhere(/\bbut for\b|\bbesides?\b(?! a proxy)/gi, 'except, in addition to'),
  everywhere(/\b(an?|one|each|some|no) (\S+ ){1,4}of (its|their|your|our|one's) own\b/gi, 'its own'),
  everywhere(/\b(at most|up to|in|for|only|after) so many\b/gi, 'N, a number of'),
  everywhere(/\bfrom (now|then) on\b|\ball the same\b|\bwithout a word\b/gi, 'afterwards, still, silently'),
  everywhere(/\bat hand\b/gi, 'cached'),
  everywhere(/\b(good|bad) (token|proof|call|nonce|request)s?\b/gi, 'valid, invalid'),
  everywhere(/\blet in\b|\blets? (it|an?|any|the|this|nobody|tokens?)( \w+)? in\b/gi, 'admit'),
  everywhere(/(^|[.,:;] |\b(or|and) )let (the|your|it|them|clients?)\b/gi, 'configure X to, X must'),
  everywhere(/\blooked (at|for)\b|\blook (what|why|whether)\b/gi, 'read, ignored, check'),
  everywhere(/\bwaited for\b|\bto wait for\b/gi, 'awaited'),
  everywhere(/\bjudg(e|es|ed|ing|ements?)\b/gi, 'validate, evaluate'),
  everywhere(/\bask(s|ed|ing)?\b/gi, 'query, require'),
  everywhere(/\banswer(s|ed|ing)?\b/gi, 'response, respond'),
  everywhere(/\btaken for\b/gi, 'treated as'),
  everywhere(/\bunder way\b|\bon (its|their|the) way\b/gi, 'in flight'),
  everywhere(/\bmade (of|from|out of)\b/gi, 'built from'),
  everywhere(/\bwhere (there (is|are)|none|nothing|nobody)\b/gi, 'if'),
  everywhere(/\b(has|have) (a|no) say\b|\bbe had\b|\bgo(es)? by\b/gi, 'is ignored, available, use'),
  everywhere(/\bas (it|they) (is|are|was|were)\b(?! (in|now|at))/gi, 'unchanged'),
];
