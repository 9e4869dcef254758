// Exits with 0 if the process is alive, by its admin listener.
const port = process.env.ADMIN_PORT ?? '9464';
try {
  const { ok } = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(2500) });
  process.exitCode = ok ? 0 : 1;
} catch {
  process.exitCode = 1;
}
