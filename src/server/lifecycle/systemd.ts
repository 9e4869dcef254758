import { spawn } from 'node:child_process';
import type { Log } from '../observation/log.ts';
import { processNumber } from './exit.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The first file descriptor that systemd passes (sd_listen_fds(3)). */
const firstDescriptor = 3;

export function findActivatedSocket({ LISTEN_PID: pid, LISTEN_FDS: count }: Environment): number | undefined {
  // A child process inherits the variables. The supervisor passes the socket to its processes.
  return pid === String(processNumber === undefined ? process.pid : process.ppid) && Number(count) >= 1
    ? firstDescriptor
    : undefined;
}

/**
 * Notifies systemd (sd_notify(3)) if `NOTIFY_SOCKET` is set. Node cannot send a datagram to a unix socket, so the command
 * of systemd does; the unit needs `NotifyAccess=all`. The supervisor notifies for its processes.
 */
export function notifySystemd(environment: Environment, state: 'READY=1' | 'STOPPING=1', log: Log): void {
  if (processNumber !== undefined || environment['NOTIFY_SOCKET'] === undefined) return;
  const { PATH, NOTIFY_SOCKET } = environment;
  const env = { PATH, NOTIFY_SOCKET };
  const child = spawn('systemd-notify', [`--pid=${process.pid}`, state], { stdio: 'ignore', env });
  const warn = (problem: string): void => log.write('warn', 'systemd_not_notified', { state, problem });
  child.once('error', (error: NodeJS.ErrnoException) => warn(error.code ?? error.message));
  child.once('exit', (code) => {
    if (code !== 0) warn(`systemd-notify ended with ${code}`);
  });
}
