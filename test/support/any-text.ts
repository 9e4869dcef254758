import fc from 'fast-check';

const surrogates = [0xd800, 0xe000] as const;
const codePoint = fc.nat({ max: 0x10ffff - (surrogates[1] - surrogates[0]) });

/** Any code point. The unit `binary` takes seconds to create, because it lists all of them. */
const unit = codePoint.map((at) => String.fromCodePoint(at < surrogates[0] ? at : at + surrogates[1] - surrogates[0]));

/** Creates strings of any code points. */
export const anyText = (lengths: { readonly minLength?: number; readonly maxLength?: number } = {}) =>
  fc.string({ unit, ...lengths });
