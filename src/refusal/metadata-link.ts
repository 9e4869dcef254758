/** Where the protected resource metadata stands (RFC 9728 §3). */
export const metadataPath = '/.well-known/oauth-protected-resource';

/**
 * Where challenges say that the metadata is (RFC 9728 §5.1): a URL, or that of the request as the client sees it, for
 * programs that serve the metadata themselves under any host.
 */
export type MetadataLink = { readonly url: string } | 'request';

const linkers = new WeakMap<object, (link: MetadataLink) => void>();

/** Lets the challenges of one server link to the metadata. A link to nothing would mislead clients: none without this. */
export function linkMetadata({ describeRefusal }: { readonly describeRefusal: object }, link: MetadataLink): void {
  linkers.get(describeRefusal)?.(link);
}

/** Has the refusals of a server told where its metadata is. */
export function onMetadataLink(describeRefusal: object, tell: (link: MetadataLink) => void): void {
  linkers.set(describeRefusal, tell);
}
