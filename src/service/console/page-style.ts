/** How the page looks. */
export const pageStyle = '';
