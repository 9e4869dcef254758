// Goes through the steps of deploy/image/Dockerfile in a folder, since no container engine is needed for them: installs the
// packed tarball, takes away the right to write, and runs the service as another user (if this one is root).
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { makeFolder } from '../shared/folder.js';
import { holdsWithin, listen, stop } from '../shared/network.js';
import { endChild, startChild } from '../shared/processes.js';

const user = 65532;
const isRoot = process.getuid?.() === 0;
const folder = makeFolder('image');
const [packed, app] = [join(folder, 'packed'), join(folder, 'app')];
let failed = false;

function check(title, holds) {
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${title}`);
  if (!holds) failed = true;
}

try {
  const dockerfile = readFileSync('deploy/image/Dockerfile', 'utf8');
  check('the image does not run as root', /^USER 65532:65532$/m.test(dockerfile));
  check(
    'the last stage runs nothing, so it needs no shell',
    !/^FROM [\s\S]*^RUN /m.test(dockerfile.slice(dockerfile.lastIndexOf('FROM '))),
  );

  mkdirSync(packed);
  execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', packed]);
  execFileSync(process.execPath, ['deploy/image/install.js', '.', packed, app], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  execFileSync('chmod', ['-R', 'a-w,a+rX', app]);
  chmodSync(folder, 0o755);
  if (isRoot) chownSync(folder, 0, 0);

  // A collector: it counts the spans by their names in the protobuf.
  const spans = { server: 0, authorize: 0 };
  const collector = createServer(async (incoming, outgoing) => {
    const body = await text(incoming.setEncoding('latin1'));
    if (incoming.url !== '/v1/traces' || !body.includes('edge-1')) return void outgoing.writeHead(404).end();
    spans.server += body.split('GET /api/').length - 1;
    spans.authorize += body.split('authorize').length - 1;
    outgoing.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  const port = await listen(collector);
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`, OTEL_SERVICE_NAME: 'edge-1' };

  const identity = isRoot ? { uid: user, gid: user } : {};
  const ports = { PORT: '18642', ADMIN_PORT: '18643' };
  const env = {
    PATH: process.env.PATH,
    HOST: '127.0.0.1',
    IDP_DOMAIN: '127.0.0.1:9',
    IDP_AUDIENCE: 'x',
    ...ports,
    ...traces,
  };
  const main = join(app, 'node_modules/portcullis/dist/cli/main.js');
  const service = startChild([process.execPath, '--import', join(app, 'traces.js'), main, 'serve'], {
    cwd: app,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    ...identity,
  });
  const probe = () => {
    try {
      execFileSync(process.execPath, [join(app, 'healthcheck.js')], { env, ...identity });
      return true;
    } catch {
      return false;
    }
  };
  const healthy = await holdsWithin(10, probe, 200);
  check(`it runs ${isRoot ? 'as another user ' : ''}from a read-only folder, and its health check passes`, healthy);
  const { status } = await fetch(`http://127.0.0.1:${ports.PORT}/api/public`);
  check('it answers', status === 200);
  await fetch(`http://127.0.0.1:${ports.PORT}/api/private`, { headers: { authorization: 'Bearer a.b.c' } });
  check('SIGTERM ends it with 0', (await endChild(service)) === 0);
  check('OTEL_* sends its spans to a collector', spans.server === 2 && spans.authorize === 1);
  await stop(collector);
  check('the health check of a service that is gone fails', !probe());
} finally {
  execFileSync('chmod', ['-R', 'u+w', folder]); // so that it can be removed
}
process.exitCode = failed ? 1 : 0;
