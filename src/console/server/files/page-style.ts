import { partsStyle } from './page-style-parts.ts';

/** Styles of the frame: colours, type, top bar, two panes (one on a phone). */
const frameStyle = `
:root {
  color-scheme: light dark;
  --ground: #f4f6f4; --paper: #fff; --ink: #16211c; --soft: #52605a; --line: #d7ded9; --strong-line: #84918a;
  --accent: #0a6b4c; --accent-ink: #fff; --accent-ground: #e0f0e9;
  --bad: #a0241a; --bad-ground: #fbe8e5; --warn: #734700; --warn-ground: #fcf0da; --code: #f1f4f2;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0e1412; --paper: #151d1a; --ink: #e4ece8; --soft: #a0b0a8; --line: #2a3731; --strong-line: #6c7c74;
    --accent: #62d3a8; --accent-ink: #06251a; --accent-ground: #12332a;
    --bad: #ff9d90; --bad-ground: #3b1b17; --warn: #f0c272; --warn-ground: #362a13; --code: #1c2622;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1, h2, h3, p, ul, ol, dl, dd, pre, figure, fieldset { margin: 0; padding: 0; }
ul, ol { list-style: none; }
fieldset { border: 0; min-width: 0; }
h1 { font-size: 1.3rem; line-height: 1.3; letter-spacing: -.015em; }
h2 { font-size: 1.1rem; line-height: 1.35; letter-spacing: -.01em; }
h3 { font-size: .95rem; margin: 1.4rem 0 .5rem; }
a { color: var(--accent); text-underline-offset: .2em; }
code, pre { font-family: var(--mono); font-size: .87em; }
pre code { font-size: 1em; }
code { overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .3rem; }
h1:focus, h2:focus, main:focus { outline: none; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.soft { color: var(--soft); }
.skip { position: absolute; left: .75rem; top: -5rem; z-index: 3; background: var(--paper); padding: .5rem .9rem; border-radius: .4rem; }
.skip:focus { top: .6rem; }

.top { position: sticky; top: 0; z-index: 2; display: flex; align-items: center; gap: .25rem 1.5rem; flex-wrap: wrap;
  padding: 0 1.5rem; background: var(--paper); border-bottom: 1px solid var(--line); }
.brand { display: flex; align-items: center; gap: .55rem; font-weight: 650; letter-spacing: -.01em; padding: .7rem 0; }
.gate { width: 1.5rem; height: 1.5rem; fill: none; stroke: var(--accent); stroke-width: 2.2; stroke-linecap: round; }
nav { display: flex; gap: .25rem; align-self: stretch; }
nav a { display: flex; align-items: center; white-space: nowrap; padding: .7rem .75rem; color: var(--soft); text-decoration: none; font-weight: 550;
  border-bottom: 2px solid transparent; border-top: 2px solid transparent; }
nav a:hover { color: var(--ink); }
nav a[aria-current] { color: var(--ink); border-bottom-color: var(--accent); }
.health { margin-left: auto; font-size: .87rem; color: var(--soft); display: flex; align-items: center; gap: .45rem; }
.health::before { content: ""; width: .55rem; height: .55rem; border-radius: 50%; background: currentColor; }
.health.good::before { background: var(--accent); }
.health.bad { color: var(--bad); font-weight: 600; }

main { padding: 1.5rem; }
.stack { display: grid; gap: 2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 36rem), 1fr)); align-items: start; }
.stack > h1 { grid-column: 1 / -1; }
.stack section > h2 { margin-bottom: .7rem; }
.stack section > p { margin-bottom: .7rem; }
.split { display: grid; grid-template-columns: minmax(20rem, min(38vw, 44rem)) minmax(0, 1fr); gap: 1.5rem; align-items: start; }
.pane { background: var(--paper); border: 1px solid var(--line); border-radius: .7rem; padding: 1.25rem 1.4rem; min-width: 0; min-height: 12rem; }
.list { min-width: 0; }
.hint { color: var(--soft); display: grid; place-items: center; min-height: 9rem; text-align: center; text-wrap: balance; }
.back { display: none; }
.bar { display: flex; align-items: center; gap: .6rem; flex-wrap: wrap; margin-bottom: .8rem; min-height: 2.2rem; }
.bar h1 { margin-right: auto; }

@media (min-width: 52.01rem) {
  .split:not(.try) .list ol { max-height: calc(100vh - 12rem); overflow-y: auto; overscroll-behavior: contain; }
}
@media (min-width: 110rem) {
  main { padding: 1.5rem 2.5rem; }
  .split:not(.try) .columns:has(.decisive) { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); gap: 2rem; align-items: start; }
  .columns > * > h3:first-child { margin-top: 1rem; }
}
@media (max-width: 52rem) {
  .top { position: static; padding: 0 1rem; gap: 0 1rem; }
  nav { order: 3; width: 100%; margin: 0 -.5rem; gap: .1rem; }
  nav a { padding: .5rem clamp(.4rem, 2vw, .75rem); }
  main { padding: 1rem; }
  .split, .split.try { grid-template-columns: minmax(0, 1fr); }
  .split:not(.try):not(.chosen) .pane { display: none; }
  .split.chosen .list > :not(.bar), .split.chosen .bar > :not(h1) { display: none; }
  .split.chosen .bar { margin: 0; }
  .back { display: inline-block; margin-bottom: .9rem; }
  .pane { padding: 1rem; }
  .bar h1 { flex-basis: 100%; }
  .segments { margin-right: auto; }
}
@media (prefers-reduced-motion: no-preference) {
  .quiet, .main, nav a { transition: background-color .12s, color .12s, border-color .12s; }
}
@media (forced-colors: active) {
  .status, .tag { border: 1px solid; }
}
`;

export const pageStyle = frameStyle + partsStyle;
