import { bearer, type Input, token } from './input.ts';

const form = ['Content-Type', 'application/x-www-form-urlencoded'];
const urls = 'URLs are logged, and RFC 9700 §4.3.2 forbids tokens there. Nothing but the header is read';
const forms = 'a token in a form needs the body before the caller is known. Nothing but the header is read';
const form400 = 'no token was sent: 401, with the challenge that says what to send (RFC 6750 §3.1)';

/** Location of the token. */
export const placeInputs: readonly Input[] = [
  { name: 'a Bearer header', call: token(), was: '200' },
  {
    name: 'the scheme in lower case',
    call: ({ issuer }) => ({ headers: ['Authorization', `bearer ${issuer.token()}`] }),
    was: '200',
  },
  {
    name: 'another scheme',
    call: ({ issuer }) => ({ headers: ['Authorization', `foo ${issuer.token()}`] }),
    was: '400',
    is: ['401', form400],
  },
  {
    name: 'a scheme without a token',
    call: () => ({ headers: ['Authorization', 'Bearer '] }),
    was: '400',
    is: ['401', form400],
  },
  {
    name: 'a query parameter',
    call: ({ issuer }) => ({ query: `?access_token=${issuer.token()}` }),
    was: '200',
    is: ['401', urls],
  },
  {
    name: 'a query parameter of a POST',
    call: ({ issuer }) => ({ method: 'POST', query: `?access_token=${issuer.token()}` }),
    was: '200',
    is: ['401', urls],
  },
  {
    name: 'a form',
    call: ({ issuer }) => ({ method: 'POST', headers: form, body: `access_token=${issuer.token()}` }),
    was: '200',
    is: ['401', forms],
  },
  {
    name: 'a form with GET',
    call: ({ issuer }) => ({ headers: form, body: `access_token=${issuer.token()}` }),
    was: '200',
    is: ['401', forms],
  },
  {
    name: 'a JSON body',
    call: ({ issuer }) => ({
      method: 'POST',
      headers: ['Content-Type', 'application/json'],
      body: JSON.stringify({ access_token: issuer.token() }),
    }),
    was: '400',
    is: ['401', form400],
  },
  {
    name: 'header and query at once',
    call: ({ issuer }) => ({ query: `?access_token=${issuer.token()}`, headers: bearer(issuer.token()) }),
    was: '400',
    is: ['200', 'the query is not read, so there is one token'],
  },
  {
    name: 'a form of another encoding beside the header',
    call: ({ issuer }) => ({
      method: 'POST',
      headers: [...bearer(issuer.token()), 'Content-Type', 'application/x-www-form-urlencoded; charset=UTF-8'],
      body: 'a=b',
    }),
    was: '200',
  },
  {
    name: 'two Authorization headers',
    call: ({ issuer }) => ({ headers: [...bearer(issuer.token()), ...bearer('another')] }),
    was: '200',
    is: ['400', 'a proxy and the API may read different ones'],
  },
];
