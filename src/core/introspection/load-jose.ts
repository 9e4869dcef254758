export async function loadJose(): Promise<typeof import('jose')> {
  try {
    return await import('jose');
  } catch (cause) {
    throw new Error('Encrypted tokens need the package jose. Install it with "npm install jose"', { cause });
  }
}
