import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '../../src/core/jose/json.ts';
import type { KeySet, ManagedKeySet } from '../../src/core/keys/key-set.ts';
import { createGateServers } from '../../src/gate/gate-servers.ts';
import { readValidRules } from './read-rules.ts';
import { readValid } from './read-settings.ts';

/** An introspection endpoint, by its URL. */
export type Endpoints = Readonly<Record<string, (token: string) => JsonObject>>;

interface EntryGateOptions {
  /** Content of the rules file. */
  readonly file: object;
  /** Keys of an issuer at an address. */
  readonly keysOf: (issuer: string, jwksUri: string | undefined) => KeySet;
  readonly endpoints?: Endpoints;
  readonly subject?: 'required' | 'optional';
}

/** Opens a gate in this process. Its introspection endpoints are functions, and `asked` lists their calls. */
export async function openEntryGate({ file, keysOf, endpoints = {}, subject = 'required' }: EntryGateOptions) {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-entries-'));
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'secret');
  const asked: string[] = [];
  const answer = async (endpoint: string, { body = '' }: { readonly body?: string }): Promise<Response> => {
    const token = new URLSearchParams(body).get('token') ?? '';
    asked.push(`${endpoint} ${token}`);
    return Response.json(endpoints[endpoint]?.(token) ?? { active: false });
  };
  const { settings } = readValid({ IDP_DOMAIN: 'a.test', IDP_AUDIENCE: 'b', SUBJECT: subject });
  const servers = createGateServers({
    // Only keys are looked up.
    open: async (issuer, { jwksUri } = {}) => ({ issuer, set: keysOf(issuer, jwksUri) as ManagedKeySet }),
    keep() {},
  });

  /** Reads a file, and makes its rules active, as a reload does. */
  const load = async (content: object) => {
    const text = JSON.stringify(content).replaceAll('"SECRET"', JSON.stringify(secret));
    const rules = readValidRules(text);
    const introspections = new Map(
      [...rules.introspections].map(([name, options]) => [name, { ...options, fetch: answer }] as const),
    );
    const { gate, adopt } = await servers.prepare({ ...rules, introspections }, { settings, mode: 'proxy', means: {} });
    adopt();
    return gate;
  };
  let gate = await load(file);

  return {
    asked,
    reload: async (content: object): Promise<void> => {
      gate = await load(content);
    },
    /** Returns the status and reason of a request with a Bearer token, and its identity headers. */
    async decide(path: string, token: string) {
      const request = new Request(`https://api.test${path}`, { headers: { authorization: `Bearer ${token}` } });
      const decision = await gate.decide(request, { encrypted: true });
      if (decision.kind === 'refused') {
        const { status, reason } = decision.refusal;
        return { status, reason, identity: {}, decision };
      }
      const { names, values } = decision.identity;
      const identity = Object.fromEntries(names.map((name, index) => [name, values[index]]));
      return { status: 200, reason: undefined, identity, decision };
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** `introspection` of an entry at an endpoint of {@link openEntryGate}. */
export const introspect = (endpoint: string, more: object = {}) => ({
  ...{ endpoint, clientId: 'gate', clientSecretFile: 'SECRET' },
  ...more,
});
