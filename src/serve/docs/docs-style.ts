export const docsStyle = `
:root { color-scheme: light dark; --text: #1b1f24; --page: #fff; --line: #d0d7de; --soft: #f3f5f7; --quiet: #505a65;
  --link: #0a6647; --open: #1a5fa8; --scope: #8f4700; --focus: #1a5fa8; --button: #0a6647; --on-button: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8ebee; --page: #12161a; --line: #39424c; --soft: #1d2329; --quiet: #adb6c0;
    --link: #5fd3a8; --open: #8cc0f5; --scope: #f0b070; --focus: #8cc0f5; --button: #5fd3a8; --on-button: #0b1f17; }
}
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 58rem; margin: 0 auto;
  padding: 2rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; margin: 0 0 .25rem; letter-spacing: -.02em; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; }
h3 { font: 600 1.05rem ui-monospace, monospace; margin: 0; }
p { margin: .4rem 0; }
a { color: var(--link); }
code, pre, textarea { font: .85rem/1.5 ui-monospace, monospace; }
pre { background: var(--soft); border-radius: .4rem; padding: .6rem .8rem; margin: .6rem 0 0; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 1rem 0; }
dt { color: var(--quiet); } dd { margin: 0; }
article, #try { border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.2rem; margin: 1rem 0; }
#try { background: var(--soft); } #try h2 { margin-top: 0; }
.name { display: flex; flex-wrap: wrap; gap: .3rem 1rem; justify-content: space-between; align-items: baseline; }
.badge { font-size: .8rem; border: 1px solid currentColor; border-radius: 1rem; padding: .05rem .6rem; white-space: nowrap; }
.open { color: var(--open); } .token { color: var(--link); } .scope { color: var(--scope); }
table { border-collapse: collapse; width: 100%; margin: .6rem 0 0; font-size: .9rem; }
td, th { text-align: left; font-weight: 400; padding: .3rem .6rem .3rem 0; border-top: 1px solid var(--line); vertical-align: top; }
th { font: .85rem/1.6 ui-monospace, monospace; width: 3.2rem; }
details { margin: .6rem 0 0; } summary { cursor: pointer; width: max-content; color: var(--link); }
label { display: block; font-weight: 600; margin: .6rem 0 .2rem; }
#scope { font: .85rem/1.5 ui-monospace, monospace; } label input { width: auto; }
textarea, #scope { width: 100%; color: inherit; background: var(--page); border: 1px solid var(--quiet); border-radius: .4rem; padding: .5rem .6rem; resize: vertical; }
button { font: inherit; font-weight: 600; color: var(--on-button); background: var(--button); border: 0; border-radius: .4rem; padding: .45rem .9rem; margin: .8rem 0 0; min-height: 2.6rem; cursor: pointer; }
button.quiet { color: var(--link); background: none; border: 1px solid currentColor; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
.answer .status { font-weight: 600; margin: .8rem 0 0; } .quiet, .answer .next { color: var(--quiet); }
[hidden] { display: none; }
`;
