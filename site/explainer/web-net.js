// The part of node:net that is evaluated when the sources load. An explanation trusts no proxy, so no list is ever checked.
export const isIP = (text) =>
  /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) ? 4 : /^[\da-f:.]*:[\da-f:.]*$/i.test(text) ? 6 : 0;
export const isIPv6 = (text) => isIP(text) === 6;

export class BlockList {
  addSubnet() {}
  addAddress() {}
  check() {
    return false;
  }
}

const absent = () => {
  throw new Error('not in a browser');
};
export const connect = absent;
export const createServer = absent;
