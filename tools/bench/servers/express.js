// express-oauth2-jwt-bearer on Express; it accepts DPoP and Bearer by default.
import express from 'express';
import { auth } from 'express-oauth2-jwt-bearer';
import { audience, host, issuer, openAnswer, port, privateAnswer } from './settings.js';

const app = express();
app.get('/api/public', (_request, response) => response.json(openAnswer()));
app.get('/api/private', auth({ issuerBaseURL: issuer, audience, tokenSigningAlg: 'RS256' }), (request, response) =>
  response.json(privateAnswer(request.auth?.payload ?? {})),
);
// Express writes the stack of each refusal to stderr by itself; nothing else here logs.
app.use((error, _request, response, _next) => {
  response
    .status(error.status ?? 500)
    .set(error.headers ?? {})
    .json({ error: error.code });
});
app.listen(port, host);
