// Markers: each connection has its own, in all that it sends, and with it the number of the request.

const pattern = /Mk([0-9a-f]{6})[0-9a-f]{2}kM/g;

/** The marker of one request of a connection. It fits into a header value, a target, a JSON string and a `kid`. */
export function markerOf(connection, request) {
  return `Mk${hex(connection, 6)}${hex(request % 256, 2)}kM`;
}

/** A string of this length that is made only from a marker, so that any part of it that leaks is recognised. */
export function fill(marker, length) {
  return marker.repeat(Math.ceil(length / marker.length)).slice(0, length);
}

/** The connections whose markers a string holds. */
export function ownersOf(string) {
  return new Set(Array.from(string.matchAll(pattern), ([, connection]) => Number.parseInt(connection, 16)));
}

function hex(number, digits) {
  return number.toString(16).padStart(digits, '0');
}
