import express from 'express';
import { createResourceServer } from 'portcullis';
import { createAuthorize } from 'portcullis/express';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const authorize = createAuthorize(resourceServer);
const app = express();

app.get('/', (_req, res) => {
  res.send('open to all');
});
app.get('/messages', authorize({ scopes: ['read:messages'] }), (req, res) => {
  res.json({ reader: authorize.accessOf(req).claims.sub });
});

app.listen(Number(process.env['PORT'] ?? 3000));
