import { html, render } from './view.ts';

const parent = document.getElementById('page');
if (parent !== null) render(html`<h1>Portcullis console</h1>`, parent);
