import { createServer } from 'node:http';
import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/node';

const {
  ISSUER: issuer = 'https://localhost:9443/',
  AUDIENCE: audience = 'https://api.example.com/',
  PORT: port = '3000',
} = process.env;
const protect = createProtect(createResourceServer({ issuer, audience }));

createServer(
  protect({ scopes: ['read:messages'] }, (_request, response, { claims }) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ reader: claims.sub }));
  }),
).listen(Number(port));
