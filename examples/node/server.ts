import { createServer } from 'node:http';
import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/node';

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const protect = createProtect(resourceServer);

const messages = protect({ scopes: ['read:messages'] }, (_request, response, { claims }) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ reader: claims.sub }));
});

createServer((request, response) => {
  if (request.url === '/') response.end('open to all');
  else if (request.url === '/messages') messages(request, response);
  else response.writeHead(404).end();
}).listen(Number(process.env['PORT'] ?? 3000));
