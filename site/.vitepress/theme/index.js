import DefaultTheme from 'vitepress/theme-without-fonts';
import './site.css';
import Finder from './Finder.vue';

export default { extends: DefaultTheme, enhanceApp: ({ app }) => app.component('Finder', Finder) };
