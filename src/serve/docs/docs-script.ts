import type { webcrypto } from 'node:crypto';

// The parts of a browser that the page uses: the service is compiled without the types of a browser.
interface Part {
  value: string;
  href: string;
  readonly checked?: boolean;
  textContent: string | null;
  hidden: boolean;
  readonly dataset: Readonly<Record<string, string | undefined>>;
  querySelector(selector: string): Part | null;
  append(part: Part): void;
  addEventListener(type: string, listener: () => void): void;
}
interface Answer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}
interface PageWindow {
  readonly document: {
    querySelectorAll(selector: string): Iterable<Part>;
    querySelector(selector: string): Part | null;
    createElement(name: string): Part;
  };
  readonly location: { readonly href: string };
  fetch(url: string, options: object): Promise<Answer>;
  addEventListener(type: string, listener: () => void): void;
}

/**
 * Calls the endpoints from the page. The browser runs the source of this function, so it uses nothing outside of itself.
 * The token remains in its field, is stored nowhere, and is sent only to the endpoints.
 */
export function runDocsPage(window: PageWindow): void {
  const { document } = window;
  const find = (selector: string): Part | null => document.querySelector(selector);
  const shownHeaders = ['WWW-Authenticate', 'DPoP-Nonce', 'Retry-After', 'Content-Type', 'X-Request-Id'];

  const read = (selector: string): string => (find(selector)?.value ?? '').trim();

  const show = (part: Part | null, text: string): void => {
    if (part === null) return;
    part.textContent = text;
    part.hidden = text === '';
  };

  const format = (text: string): string => {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  };

  const encode = (bytes: ArrayBuffer | Uint8Array): string =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replace(/=+$/, '');
  const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
  const digest = async (text: string): Promise<string> => encode(await crypto.subtle.digest('SHA-256', bytesOf(text)));

  /** A token that is bound to a key of this page. The key cannot be exported. */
  let bound: { readonly token: string; readonly privateKey: webcrypto.CryptoKey; readonly jwk: object } | undefined;
  let nonce: string | undefined;
  let consoleUrl: string | undefined;

  const createKey = async () => {
    const { privateKey, publicKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, [
      'sign',
    ]);
    const { crv, kty, x, y } = await crypto.subtle.exportKey('jwk', publicKey);
    // RFC 7638 §3: the members in this order.
    const jwk = { crv, kty, x, y };
    return { privateKey, jwk, jkt: await digest(JSON.stringify(jwk)) };
  };

  const prove = async (url: string): Promise<string> => {
    if (bound === undefined) return '';
    const { token, privateKey, jwk } = bound;
    const header = { typ: 'dpop+jwt', alg: 'ES256', jwk };
    const iat = Math.floor(Date.now() / 1000);
    const claims = { jti: crypto.randomUUID(), htm: 'GET', htu: url, iat, ath: await digest(token), nonce };
    const input = [header, claims].map((part) => encode(bytesOf(JSON.stringify(part)))).join('.');
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
    return `${input}.${encode(await crypto.subtle.sign(algorithm, privateKey, bytesOf(input)))}`;
  };

  const readLocal = async (query: string): Promise<string | undefined> => {
    const answer = await window.fetch(`./docs/token${query}`, { cache: 'no-store', credentials: 'omit' });
    if (answer.status !== 200) throw new TypeError('no local provider');
    const local = JSON.parse(await answer.text()) as { readonly console?: string; readonly token?: string }; // the service writes it
    consoleUrl = local.console;
    return local.token;
  };

  const authorize = async (): Promise<void> => {
    const [field, result] = [find('#token'), find('#authorized')];
    if (field === null) return;
    try {
      const key = find('#bound')?.checked === true ? await createKey() : undefined;
      const jkt = key === undefined ? '' : `&jkt=${key.jkt}`;
      const token = (await readLocal(`?scope=${encodeURIComponent(read('#scope'))}${jkt}`)) ?? '';
      bound = key && { ...key, token };
      field.value = token;
      show(result, key === undefined ? 'A token is above.' : 'A bound token is above. Each call has its own proof.');
    } catch {
      show(result, 'No token: the local provider does not respond. Start it: portcullis dev');
    }
  };

  const readHeaders = async (isOpen: boolean, url: string): Promise<Record<string, string> | string> => {
    const token = read('#token');
    const proof = read('#proof') || (!isOpen && token === bound?.token ? await prove(url) : '');
    if (isOpen || (token === '' && proof === '')) return {};
    if (/^(?:bearer|dpop)\s/i.test(token)) return 'Paste only the token, without Bearer or DPoP in front of it.';
    if (/[^\x21-\x7e]/.test(token + proof)) return 'The token or the proof has a space or a line break in it.';
    return { Authorization: `${proof === '' ? 'Bearer' : 'DPoP'} ${token}`, ...(proof !== '' && { DPoP: proof }) };
  };

  const call = async (button: Part, output: Part): Promise<void> => {
    const part = (name: string): Part | null => output.querySelector(`.${name}`);
    for (const name of ['status', 'head', 'body', 'next', 'link']) show(part(name), '');
    const isOpen = button.dataset['access'] === 'open';
    const url = new URL(`.${button.dataset['path']}`, window.location.href).href;
    const headers = await readHeaders(isOpen, url);
    if (typeof headers === 'string') return show(part('status'), headers);
    show(part('status'), 'Calling…');
    try {
      const options = { cache: 'no-store', credentials: 'omit', redirect: 'error' };
      let answer = await window.fetch(url, { ...options, headers });
      const challenge = answer.headers.get('DPoP-Nonce');
      if (challenge !== null && challenge !== nonce && read('#proof') === '' && 'DPoP' in headers) {
        nonce = challenge;
        if (answer.status === 401)
          answer = await window.fetch(url, { ...options, headers: { ...headers, DPoP: await prove(url) } });
      }
      const lines = shownHeaders.flatMap((name) => {
        const value = answer.headers.get(name);
        return value === null ? [] : [`${name}: ${value}`];
      });
      show(part('body'), format(await answer.text()));
      show(part('head'), lines.join('\n'));
      show(part('status'), `${answer.status} ${answer.statusText}`);
      const isRefused = answer.status === 401 || answer.status === 403 || answer.status === 400;
      const hasToken = 'Authorization' in headers;
      if (isRefused)
        show(
          part('next'),
          hasToken
            ? 'To see each check of this call: copy the token, and run: portcullis explain'
            : 'No token was sent: paste one above.',
        );
      const id = answer.headers.get('X-Request-Id');
      if (isRefused && id !== null && consoleUrl !== undefined) {
        const link = document.createElement('a');
        link.textContent = 'Each check of this call, in the console';
        link.href = `${consoleUrl}#decision/${id}`;
        show(part('next'), hasToken ? '' : 'No token was sent. ');
        show(part('link'), ' ');
        part('link')?.append(link);
      }
    } catch {
      show(part('status'), 'No response: the service cannot be reached from this page.');
    }
  };

  for (const form of document.querySelectorAll('.try')) {
    form.hidden = false;
    const button = form.querySelector('button');
    const output = form.querySelector('.answer');
    if (button !== null && output !== null) button.addEventListener('click', () => void call(button, output));
  }
  const local = find('#local');
  if (local !== null) {
    readLocal('').then(
      () => {
        local.hidden = false;
      },
      () => {},
    );
    find('#authorize')?.addEventListener('click', () => void authorize());
  }
  const forget = (): void => {
    for (const field of document.querySelectorAll('.secret')) field.value = '';
    bound = undefined;
  };
  find('#forget')?.addEventListener('click', forget);
  // A browser may restore a closed page.
  window.addEventListener('pagehide', forget);
}
