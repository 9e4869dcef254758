// Apache with mod_auth_openidc as an OAuth 2.0 resource server; the response has the subject by server-side include.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messages } from './settings.js';

const modules = '/usr/lib/apache2/modules';
export const apacheModule = `${modules}/mod_auth_openidc.so`;

/** Writes the configuration and the two pages; the command line. */
export function apacheCommand({ port, issuer, audience, jwksUri, certificateFile, folder: parent }) {
  const folder = join(parent, 'apache');
  const pages = join(folder, 'pages');
  mkdirSync(join(pages, 'api'), { recursive: true });
  writeFileSync(join(pages, 'api', 'public'), JSON.stringify({ message: messages.public }));
  writeFileSync(
    join(pages, 'api', 'private'),
    `{"message":"${messages.private}","user_id":"<!--#echo encoding="none" var="REMOTE_USER" -->"}`,
  );
  const load = (name, file = name) => `LoadModule ${name}_module ${modules}/mod_${file}.so`;
  const lines = [
    ...['mpm_event', 'authz_core', 'authn_core', 'authz_user', 'include', 'dir', 'auth_openidc'].map((name) =>
      load(name),
    ),
    ...(process.getuid?.() === 0 ? ['User www-data', 'Group www-data'] : []),
    `ServerRoot ${folder}`,
    `PidFile ${folder}/apache.pid`,
    `DefaultRuntimeDir ${folder}`,
    'ServerName 127.0.0.1',
    `Listen 127.0.0.1:${port}`,
    `ErrorLog ${folder}/error.log`,
    'LogLevel crit',
    'KeepAlive On',
    'MaxKeepAliveRequests 0',
    `DocumentRoot ${pages}`,
    `OIDCOAuthVerifyJwksUri ${jwksUri}`,
    `OIDCCABundlePath ${certificateFile}`,
    'OIDCOAuthRemoteUserClaim sub',
    `<Directory ${pages}>`,
    '  Options +Includes',
    '  Require all granted',
    '</Directory>',
    '<Location /api/public>',
    '  ForceType application/json',
    '</Location>',
    '<Location /api/private>',
    '  AuthType oauth20',
    '  <RequireAll>',
    '    Require valid-user',
    `    Require claim "iss:${issuer}"`,
    `    Require claim "aud:${audience}"`,
    '  </RequireAll>',
    '  SetOutputFilter INCLUDES',
    '  ForceType application/json',
    '</Location>',
    '',
  ];
  const file = join(folder, 'apache.conf');
  writeFileSync(file, lines.join('\n'));
  return ['/usr/sbin/apache2', '-DFOREGROUND', '-f', file];
}
