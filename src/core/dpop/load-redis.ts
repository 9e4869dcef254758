export async function loadRedis(): Promise<typeof import('@redis/client')> {
  try {
    return await import('@redis/client');
  } catch (cause) {
    throw new Error('A store in Redis needs its client. Install it with "npm install @redis/client"', { cause });
  }
}
