/** The mark of the product as an element of HTML; the site has the same. */
export const mark =
  '<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#0b6e4f"></rect>' +
  '<path d="M7 8h18M9 8v16M16 8v16M23 8v16M7 15h18M7 22h18" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"></path></svg>';
/** The mark as a file. */
export const markFile: string = mark.replace('<svg', '<svg xmlns="http://www.w3.org/2000/svg"');
