export const pageStyle = `
/* The frame: colours, type, top bar, two panes (one on a phone). */
:root {
  color-scheme: light dark;
  --ground: light-dark(#f4f6f4, #0e1412); --paper: light-dark(#fff, #151d1a); --ink: light-dark(#16211c, #e4ece8);
  --soft: light-dark(#52605a, #a0b0a8); --line: light-dark(#d7ded9, #2a3731); --strong-line: light-dark(#84918a, #6c7c74);
  --accent: light-dark(#0a6b4c, #62d3a8); --accent-ink: light-dark(#fff, #06251a); --accent-ground: light-dark(#e0f0e9, #12332a);
  --bad: light-dark(#a0241a, #ff9d90); --bad-ground: light-dark(#fbe8e5, #3b1b17);
  --warn: light-dark(#734700, #f0c272); --warn-ground: light-dark(#fcf0da, #362a13); --code: light-dark(#f1f4f2, #1c2622);
  --mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1, h2, h3, p, ul, ol, dl, dd, pre, figure, fieldset { margin: 0; padding: 0; } ul, ol { list-style: none; }
fieldset { border: 0; min-width: 0; }
h1 { font-size: 1.3rem; line-height: 1.3; letter-spacing: -.015em; }
h2 { font-size: 1.1rem; line-height: 1.35; letter-spacing: -.01em; } h3 { font-size: .95rem; margin: 1.4rem 0 .5rem; }
a { color: var(--accent); text-underline-offset: .2em; } code, pre { font-family: var(--mono); font-size: .87em; }
pre code { font-size: 1em; } code { overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .3rem; }
h1:focus, h2:focus, main:focus { outline: none; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.soft { color: var(--soft); }
.skip { position: absolute; left: .75rem; top: -5rem; z-index: 3; background: var(--paper); padding: .5rem .9rem; border-radius: .4rem; }
.skip:focus { top: .6rem; }

.top { position: sticky; top: 0; z-index: 2; display: flex; align-items: center; gap: .25rem 1.5rem; flex-wrap: wrap;
  padding: 0 1.5rem; background: var(--paper); border-bottom: 1px solid var(--line); }
.brand { display: flex; align-items: center; gap: .55rem; font-weight: 650; letter-spacing: -.01em; padding: .7rem 0; }
.gate { width: 1.5rem; height: 1.5rem; }
nav { display: flex; gap: .25rem; align-self: stretch; }
nav a { display: flex; align-items: center; white-space: nowrap; padding: .7rem .75rem; color: var(--soft); text-decoration: none; font-weight: 550;
  border-bottom: 2px solid transparent; border-top: 2px solid transparent; }
nav a:hover { color: var(--ink); } nav a[aria-current] { color: var(--ink); border-bottom-color: var(--accent); }
.health { margin-left: auto; font-size: .87rem; color: var(--soft); display: flex; align-items: center; gap: .45rem; }
.health::before { content: ""; width: .55rem; height: .55rem; border-radius: 50%; background: currentColor; }
.health.good::before { background: var(--accent); } .health.bad { color: var(--bad); font-weight: 600; }

main { padding: 1.5rem; }
.stack { display: grid; gap: 2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 36rem), 1fr)); align-items: start; }
.stack > h1 { grid-column: 1 / -1; } .stack section > :is(h2, p) { margin-bottom: .7rem; }
.pane, .list ol, .routes, .notes, .facts, .cards li { background: var(--paper); border: 1px solid var(--line); border-radius: .7rem; }
.split { display: grid; grid-template-columns: minmax(20rem, min(38vw, 44rem)) minmax(0, 1fr); gap: 1.5rem; align-items: start; }
.pane { padding: 1.25rem 1.4rem; min-width: 0; min-height: 12rem; } .list { min-width: 0; }
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
  nav { order: 3; flex-wrap: wrap; width: 100%; margin: 0 -.5rem; gap: .1rem; }
  nav a { padding: .5rem clamp(.4rem, 2vw, .75rem); }
  main { padding: 1rem; }
  .split, .split.try { grid-template-columns: minmax(0, 1fr); }
  .split:not(.try) .pane:has(> .hint) { display: none; }
  .split:not(.try) .list ol { max-height: 45vh; overflow-y: auto; }
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

/* The panes: rows, checks, code, the form. */
.status { display: inline-block; min-width: 2.9rem; padding: .05rem .45rem; border-radius: .35rem; text-align: center;
  font: 600 .87em/1.55 var(--mono); font-variant-numeric: tabular-nums; background: var(--code); color: var(--soft); }
.tag { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .8rem; line-height: 1.6; font-weight: 500;
  background: var(--code); color: var(--soft); overflow-wrap: anywhere; }
.status.allowed, .tag.open, .tag.certain { background: var(--accent-ground); color: var(--accent); }
.status.refused, .tag.deny, .tag.error { background: var(--bad-ground); color: var(--bad); }
.status.would_refuse, .tag.likely, .tag.warn, .notice, .restarted { background: var(--warn-ground); color: var(--warn); }
.tags { display: flex; flex-wrap: wrap; gap: .3rem; }

button, select, input, textarea { font: inherit; color: inherit; }
.quiet { border: 1px solid var(--strong-line); background: var(--paper); border-radius: .45rem; padding: .25rem .75rem; cursor: pointer; }
.quiet:hover, .quiet[aria-pressed=true] { background: var(--accent-ground); border-color: var(--accent); }
.segments { display: flex; border: 1px solid var(--strong-line); border-radius: .45rem; overflow: hidden; background: var(--paper); }
.segments label { position: relative; cursor: pointer; }
.segments input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer; }
.segments span { display: block; padding: .25rem .75rem; }
.segments input:checked + span { background: var(--accent); color: var(--accent-ink); font-weight: 600; }
.segments:focus-within { outline: 2px solid var(--accent); outline-offset: 2px; }

.list ol { overflow: hidden; }
.list li a { display: grid; grid-template-columns: auto minmax(0, 1fr) auto; gap: .8rem; align-items: center; padding: .55rem .9rem;
  color: inherit; text-decoration: none; }
.list li a:hover { background: var(--code); } .list li a:focus-visible { outline-offset: -2px; }
.list li a[aria-current] { background: var(--accent-ground); box-shadow: inset 3px 0 var(--accent); }
.list .refused + .what .why { color: var(--bad); } .what { display: grid; }
.call { font: 500 .87em/1.5 var(--mono); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.why { color: var(--soft); font-size: .87rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
time { color: var(--soft); font-size: .87rem; font-variant-numeric: tabular-nums; }
.list li a[aria-current] .what .why, .list li a[aria-current] time { color: var(--ink); }
.notice { border-radius: .5rem; padding: .5rem .8rem; margin-bottom: .8rem; } .problem { color: var(--bad); }
.empty { text-align: center; padding: 2.6rem 1.2rem; border: 1px dashed var(--strong-line); border-radius: .7rem; color: var(--soft); text-wrap: balance; }
.empty h3 { margin: .6rem 0 .25rem; color: var(--ink); font-size: 1rem; }
.empty .gate { width: 2.4rem; height: 2.4rem; }

.detail { overflow-wrap: anywhere; } .detail header { display: grid; gap: .3rem; }
.detail h2 { display: flex; align-items: baseline; flex-wrap: wrap; gap: .3rem .6rem; }
.detail h2 .reason { font-weight: 600; } .detail .response { margin-top: .7rem; }
.tried .detail > pre { margin-top: .8rem; }
.tried .detail + .detail { margin-top: 1.8rem; padding-top: 1.6rem; border-top: 1px solid var(--line); }
.decisive { margin-top: 1rem; padding: .9rem 1.1rem; border-radius: .6rem; background: var(--bad-ground); }
.decisive dl, .facts { display: grid; gap: .35rem; }
.decisive dl > div { display: grid; grid-template-columns: 5.2rem minmax(0, 1fr); gap: .6rem; }
.decisive dt { color: var(--bad); font-weight: 600; text-transform: capitalize; }
.decisive dd code { display: block; color: var(--ink); } .decisive dl + * { margin-top: .8rem; }
.causes { display: grid; gap: .8rem; } .search { display: grid; gap: .6rem; margin-bottom: .8rem; }
.counts { display: flex; flex-wrap: wrap; gap: .3rem; max-height: 8rem; overflow-y: auto; }
.counts .quiet { font-size: .82rem; padding: 0 .55rem; border-color: var(--line); border-radius: 1rem; }
.old { opacity: .75; } .restarted { border-radius: .6rem; padding: .8rem 1rem; margin-bottom: 1.2rem; }
.restarted .code { color: var(--ink); }
mark { background: none; color: var(--bad); font-weight: 700; text-decoration: underline; text-decoration-thickness: .12em; text-underline-offset: .2em; }
mark:empty::before { content: "‸"; } .copy { font-size: .8rem; line-height: 1.5; padding: 0 .5rem; font-weight: 400; }
.part button { all: unset; box-sizing: border-box; width: 100%; cursor: pointer; padding: .1rem 0; }
.part button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .3rem; }
.part button::before { content: "▸"; display: inline-block; width: 1.1em; }
.part button[aria-expanded=true]::before { content: "▾"; } .part button .soft { font-weight: 400; }
.fix { margin-top: .3rem; overflow-wrap: anywhere; } .fix strong { margin-right: .4rem; } .without { margin-top: 1rem; }
.also { display: grid; gap: .3rem; } .plain { color: inherit; }

.checks { width: 100%; border-collapse: collapse; } .checks th { text-align: left; font-weight: 400; }
.checks .part th { font-weight: 600; padding: .9rem 0 .3rem; font-size: .87rem; color: var(--soft); border-bottom: 1px solid var(--line); }
.checks tbody:first-of-type .part th { padding-top: 0; }
.checks tr:not(.part) > * { padding: .28rem .8rem .28rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
.checks th[scope=row] { width: 34%; } .verdict { width: 6.4rem; white-space: nowrap; }
.verdict span { display: inline-flex; align-items: center; gap: .45rem; color: var(--soft); }
.verdict span::before { content: ""; flex: none; width: .55rem; height: .55rem; border-radius: 50%; border: 1.5px solid var(--strong-line); }
.pass .verdict span { color: var(--accent); }
.pass .verdict span::before { border-color: var(--accent); background: var(--accent); }
:is(.fail, .follows) .verdict span { color: var(--bad); font-weight: 600; }
:is(.fail, .follows) .verdict span::before { border-radius: .1rem; border-color: var(--bad); background: var(--bad); transform: rotate(45deg); }
.checks .fail th[scope=row] { font-weight: 600; }
.seen { color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; } .checks .fail .seen { color: var(--ink); }

pre { background: var(--code); border-radius: .5rem; padding: .75rem .9rem; overflow: auto; line-height: 1.55; max-height: 26rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.code { position: relative; margin-top: .8rem; } h3 + .code { margin-top: 0; } .code pre { padding-right: 5.5rem; }
.code button { position: absolute; top: .45rem; right: .45rem; font-size: .82rem; padding: .1rem .6rem; }
details { margin-top: .9rem; } summary { cursor: pointer; font-weight: 600; margin-bottom: .5rem; }
details[open] > .decisive { margin-top: .2rem; }

.field { display: grid; gap: .25rem; margin-top: .9rem; min-width: 0; flex: 1; }
.field > span, legend { font-weight: 600; font-size: .9rem; } .field.narrow { flex: 0 0 6.5rem; }
.row { display: flex; gap: .8rem; }
select, textarea, input:not([type=radio]) { width: 100%; padding: .42rem .6rem; border: 1px solid var(--strong-line); border-radius: .45rem; background: var(--paper); }
textarea, input:not([type=radio], [type=search]) { font-family: var(--mono); font-size: .9em; }
textarea { resize: vertical; overflow-wrap: anywhere; } .field + .soft { margin-top: .6rem; }
.kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(11.5rem, 45%), 1fr)); gap: .45rem; margin-top: 1.1rem; }
.kinds legend { margin-bottom: .35rem; }
.kinds label { display: flex; gap: .6rem; padding: .55rem .7rem; border: 1px solid var(--line); border-radius: .55rem; background: var(--paper); cursor: pointer; }
.kinds label:hover { border-color: var(--strong-line); }
.kinds label.on { border-color: var(--accent); background: var(--accent-ground); } .kinds label.on .soft { color: var(--ink); }
.kinds label > span { display: grid; align-content: start; line-height: 1.35; } .kinds strong { font-weight: 600; }
.kinds .soft { font-size: .84rem; }
.kinds input { accent-color: var(--accent); margin: .2rem 0 0; flex: none; width: 1rem; height: 1rem; }
.main { margin-top: 1.1rem; width: 100%; padding: .6rem 1rem; border: 0; border-radius: .5rem; background: var(--accent); color: var(--accent-ink); font-weight: 650; cursor: pointer; }
.main:hover { filter: brightness(1.08); }

.routes li, .notes li { padding: .6rem 1rem; }
.list ol > li + li, .routes li + li, .notes li + li { border-top: 1px solid var(--line); }
.routes li { display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: center; justify-content: space-between; }
.routes .name { font-weight: 600; margin-right: .7rem; } .cards { display: grid; gap: .7rem; }
.cards li { padding: .8rem 1rem; display: grid; gap: .3rem; }
.notes li { display: grid; grid-template-columns: 4.2rem 3.4rem minmax(0, 1fr); gap: .7rem; align-items: baseline; overflow-wrap: anywhere; }
.facts { padding: .8rem 1rem; }
.facts > div { display: grid; grid-template-columns: minmax(8rem, 13rem) minmax(0, 1fr); gap: .8rem; }
.facts dt { color: var(--soft); } .notes .tag { justify-self: start; }

@media (max-width: 34rem) {
  select { padding-inline: .3rem; }
  .checks tr:not(.part) { display: grid; grid-template-columns: minmax(0, 1fr) auto; padding: .3rem 0; border-bottom: 1px solid var(--line); }
  .checks tr:not(.part) > * { border: 0; padding: 0; width: auto; }
  .checks .part th { display: block; }
  .checks tr:not(.part) .seen { grid-column: 1 / -1; }
  .notes li { grid-template-columns: auto 1fr; }
  .notes li > :last-child { grid-column: 1 / -1; }
  .facts > div, .decisive dl > div { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .code pre { padding-right: .9rem; padding-top: 2.4rem; }
}
`;
