export class LateError extends Error {
  override readonly name = 'LateError';
}

/** Returns the response, or rejects with `LateError` after the seconds. */
export async function limit<T>(response: Promise<T>, seconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const refuse = (): void => reject(new LateError('Redis did not respond in time'));
    // A response that arrived while this process was busy is read first, and counts.
    timer = setTimeout(() => setImmediate(refuse), seconds * 1000);
  });
  try {
    return await Promise.race([response, late]);
  } finally {
    clearTimeout(timer);
  }
}
