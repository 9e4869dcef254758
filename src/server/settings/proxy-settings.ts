import { hideUserInfo, showUrl } from '../../http/shown-url.ts';
import { readProxyAddress } from '../../outbound/https-address.ts';
import type { EffectiveSetting, SettingProblem } from './setting-report.ts';

/** Shows and checks the outbound settings that Node and the HTTP client read. */
export function readProxies(
  environment: Readonly<Record<string, string | undefined>>,
  problems: SettingProblem[],
): readonly EffectiveSetting[] {
  const effective: EffectiveSetting[] = [];
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'NODE_EXTRA_CA_CERTS']) {
    // Lower case first, as the client reads them.
    const value = environment[name.toLowerCase()] ?? environment[name];
    if (value === undefined || value === '') continue;
    const isProxy = name.startsWith('HTTP');
    const shown = (isProxy ? showUrl : hideUserInfo)(value);
    effective.push({ name, value: shown, source: 'environment' });
    if (isProxy && readProxyAddress(value) === undefined) {
      problems.push({ name, value: shown, fix: 'Set a URL such as http://proxy.example.com:3128.' });
    }
  }
  return effective;
}
