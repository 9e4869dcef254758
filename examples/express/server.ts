import express from 'express';
import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/express';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const protect = createProtect(resourceServer);
const app = express();

app.get('/', (_req, res) => {
  res.send('open to all');
});
app.get(
  '/messages',
  protect({ scopes: ['read:messages'] }, (_req, res, { claims }) => res.json({ reader: claims.sub })),
);

app.listen(Number(process.env['PORT'] ?? 3000));
