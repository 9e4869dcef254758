// Code for a provider and a framework: the example of the framework, with the preset of the provider.

const settings = /const \{ ISSUER: issuer[\s\S]*?process\.env;\n/;
const server = 'createResourceServer({ issuer, audience })';
const literal = (value) =>
  JSON.stringify(value)
    .replace(/"/g, "'")
    .replace(/'(\w+)':/g, ' $1: ')
    .replace(/(\S)\}/g, '$1 }')
    .replace(/,\s*/g, ', ');

/** Complete TypeScript code. Throws if the example has another form. */
export function composeCode({ id, values, recipients }, { text, path }) {
  if (!settings.test(text) || !text.includes(server))
    throw new Error(`examples/${path} does not create its server as usual`);
  const names = ['fillIn', id].sort((a, b) => a.localeCompare(b)).join(', ');
  const [[member, value]] = Object.entries(recipients);
  const issuer = `fillIn(${id}, ${literal(values).trim()})`;
  const recipient = `${member}: ${literal(value)}`;
  return text
    .replace(/^(import .* from 'portcullis';\n)/m, `$1import { ${names} } from 'portcullis/providers';\n`)
    .replace(
      settings,
      `const issuer = ${member === 'clientIds' ? issuer.replace(/\)$/, `, { ${recipient} })`) : issuer};\n`,
    )
    .replace(
      server,
      member === 'clientIds'
        ? 'createResourceServer({ issuers: [issuer] })'
        : `createResourceServer({ issuers: [issuer], ${recipient} })`,
    );
}
