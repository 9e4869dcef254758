import { showPage } from './page.ts';

showPage();
