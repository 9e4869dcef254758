// The part of node:util that is called when the sources load.
export const promisify = () => () => Promise.reject(new Error('not in a browser'));
