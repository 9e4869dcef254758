// Data of the finder: the presets with values that fit them, and the examples of the frameworks.
import { readFileSync } from 'node:fs';
import * as presets from '../build/providers/index.js';

/** Values for the placeholders of a preset, and the recipients that its provider writes into tokens. */
const audience = 'https://api.example.com/';
const clientId = '6e74172b-be56-4843-9ff4-e66a39bb12e3';
const usual = {
  domain: 'example.com',
  host: 'id.example.com',
  realm: 'main',
  tenant: '8a1b0c2d-0000-4000-8000-3e4f5a6b7c8d',
  server: 'default',
  region: 'eu-central-1',
  userPool: 'eu-central-1_Ab12Cd34E',
  application: 'orders',
  project: 'orders-4f2a1',
  client: 'client_01HBEQKA6K4Q',
  environment: '0b6e5b1c-5f0e-4b6f-9d0c-2f3a4b5c6d7e',
};
const special = {
  auth0: { values: { domain: 'tenant.eu.auth0.com' } },
  okta: { values: { domain: 'example.okta.com' }, recipients: { audience: 'api://default' } },
  entraV1: { recipients: { audience: 'api://orders' } },
  entraV2: { recipients: { audience: clientId } },
  cognito: { recipients: { clientIds: ['4bq1r3examplewebclient'] } },
  clerk: { values: { domain: 'clerk.example.com' }, recipients: { clientIds: ['https://app.example.com'] } },
  betterAuth: { recipients: { audience: 'https://id.example.com' } },
  firebase: { recipients: { audience: 'orders-4f2a1' } },
  workOs: { recipients: { clientIds: ['client_01HBEQKA6K4Q'] } },
  kinde: { values: { domain: 'example.kinde.com' } },
  ory: { values: { host: 'slug.projects.oryapis.com' } },
  gitLab: { values: { host: 'gitlab.com' } },
  kubernetes: { values: { host: 'kubernetes.default.svc.cluster.local' } },
  pingOne: { values: { host: 'auth.pingone.eu' } },
};

/** Label, folder and file of each example. */
const frameworks = [
  { name: 'Express', path: 'express/server.ts' },
  { name: 'Fastify', path: 'fastify/server.ts' },
  { name: 'Hono', path: 'hono/server.ts' },
  { name: 'NestJS', path: 'nest/server.ts' },
  { name: 'node:http', path: 'node/server.ts' },
  { name: 'fetch handlers', path: 'fetch/server.ts' },
  { name: 'Bun', path: 'bun/server.ts' },
  { name: 'Deno', path: 'deno/server.ts' },
];

export function readFinderData() {
  const providers = Object.entries(presets)
    .filter(([, preset]) => typeof preset === 'object' && typeof preset.issuer === 'string')
    .map(([id, { name, issuer, jwksUri = '' }]) => {
      const { values = {}, recipients = { audience } } = special[id] ?? {};
      const names = [...`${issuer} ${jwksUri}`.matchAll(/\{(\w+)\}/g)].map(([, placeholder]) => placeholder);
      const filled = names.map((placeholder) => [placeholder, values[placeholder] ?? usual[placeholder]]);
      const missing = filled.find(([, value]) => value === undefined);
      if (missing !== undefined) throw new Error(`the finder has no value for ${missing[0]} of ${id}`);
      return { id, name, values: Object.fromEntries(filled), recipients };
    });
  const examples = frameworks.map(({ name, path }) => ({
    name,
    path,
    text: readFileSync(new URL(`../examples/${path}`, import.meta.url), 'utf8'),
  }));
  return { providers, frameworks: examples };
}
