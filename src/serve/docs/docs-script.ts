// The parts of a browser that the page uses: the service is compiled without the types of a browser.
interface Part {
  value: string;
  textContent: string | null;
  hidden: boolean;
  readonly dataset: Readonly<Record<string, string | undefined>>;
  querySelector(selector: string): Part | null;
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
  };
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

  const readHeaders = (isOpen: boolean): Record<string, string> | string => {
    const token = read('#token');
    const proof = read('#proof');
    if (isOpen || (token === '' && proof === '')) return {};
    if (/^(?:bearer|dpop)\s/i.test(token)) return 'Paste only the token, without Bearer or DPoP in front of it.';
    if (/[^\x21-\x7e]/.test(token + proof)) return 'The token or the proof has a space or a line break in it.';
    return { Authorization: `${proof === '' ? 'Bearer' : 'DPoP'} ${token}`, ...(proof !== '' && { DPoP: proof }) };
  };

  const call = async (button: Part, output: Part): Promise<void> => {
    const part = (name: string): Part | null => output.querySelector(`.${name}`);
    for (const name of ['status', 'head', 'body', 'next']) show(part(name), '');
    const headers = readHeaders(button.dataset['access'] === 'open');
    if (typeof headers === 'string') return show(part('status'), headers);
    show(part('status'), 'Calling…');
    try {
      const answer = await window.fetch(`.${button.dataset['path']}`, {
        headers,
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
      });
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
  const forget = (): void => {
    for (const field of document.querySelectorAll('.secret')) field.value = '';
  };
  find('#forget')?.addEventListener('click', forget);
  // A browser may restore a closed page.
  window.addEventListener('pagehide', forget);
}
