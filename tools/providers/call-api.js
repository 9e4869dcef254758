// The API by which a provider is set up.

/** Sends JSON. Resolves with the cookies of the response, for the next request. */
export async function callApi(url, { json, method = 'POST', headers = {} }) {
  const options = { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(json) };
  const response = await fetch(url, /** @type {RequestInit} */ (options));
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  const cookies = response.headers.getSetCookie();
  return cookies.map((each) => each.split(';')[0]).join('; ');
}
