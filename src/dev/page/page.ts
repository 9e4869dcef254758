import { showPage } from '../../console/page/page.ts';
import { TryView } from './try-view.ts';

showPage(TryView);
