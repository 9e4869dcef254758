// Bundled for workerd instead of undici: the platform has its own fetch, and no proxy of the environment.
export {};
