import { useEffect, useState } from './view.ts';

export type Fetched<T> = T | 'loading' | 'missing';

export type Problem = Readonly<{ problem: string }>;

/** Fetches a value for each path and revision. A value stays if the service does not respond to the next request. */
export function useFetched<T>(path: string, revision = ''): Fetched<T> {
  const [fetched, show] = useState<{ readonly path: string; readonly value: Fetched<T> }>({ path, value: 'loading' });
  useEffect(() => {
    let isShown = true;
    const take = (value: Fetched<T>): void =>
      show((before) => {
        const isStale = !isShown || (value === 'missing' && before.path === path && before.value !== 'loading');
        return isStale ? before : { path, value };
      });
    fetch(path)
      .then(async (response) => take(response.ok ? ((await response.json()) as T) : 'missing')) // the service writes this shape
      .catch(() => take('missing'));
    return () => {
      isShown = false;
    };
  }, [path, revision]);
  return fetched.path === path ? fetched.value : 'loading';
}

export async function post<T>(path: string, type: string, body: string): Promise<T | Problem> {
  const response = await fetch(path, { method: 'POST', headers: { 'content-type': type }, body }).catch(
    () => undefined,
  );
  if (response === undefined) return { problem: 'The service does not respond.' };
  return response.ok ? ((await response.json()) as T | Problem) : { problem: await response.text() }; // the service writes this shape
}
