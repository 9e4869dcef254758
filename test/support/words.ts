/** Splits a list of strings without white space. */
export function words(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** Splits a list of strings at `|` and at the ends of lines, without the white space around them. */
export function cells(text: string): readonly string[] {
  return text.trim().split(/\s*[|\n]\s*/);
}
