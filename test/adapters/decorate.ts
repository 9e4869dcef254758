/** Applies decorators to a method as the syntax does. */
export function decorate(target: object, name: string, ...decorators: readonly MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(target, name);
  if (descriptor === undefined) throw new TypeError(`no method ${name}`);
  for (const decorator of decorators.toReversed()) decorator(target, name, descriptor);
  Object.defineProperty(target, name, descriptor);
}
