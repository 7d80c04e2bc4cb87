// SPDX-License-Identifier: Apache-2.0
// The tab of TensorBoard: a list of the runs that hold gradients, and the page of the chosen run,
// which is loaded again when the run has newer tensors.

const PERIOD = 15000;  // milliseconds between two looks at the runs
const NONE = 'No run here holds gradients. halfscope.torch.Recorder records them.';
const STYLE = `
  body {margin: 0; height: 100vh; display: flex; flex-direction: column; font: 14px system-ui, sans-serif}
  header {padding: 8px 16px; border-bottom: 1px solid #8884; display: flex; align-items: center; gap: 12px; min-height: 20px}
  main {position: relative; flex: 1}
  iframe {position: absolute; width: 100%; height: 100%; border: 0}`;

function element(name, parent, properties = {}) {
  return parent.appendChild(Object.assign(document.createElement(name), properties));
}

const header = element('header', document.body);
const runs = element('select', element('label', header, {textContent: 'Run '}));
const note = element('span', header);
const main = element('main', document.body);
let shown = {};

/** Opens and scrolls the new page of a run as the reader had its old one. */
function restore(old, page) {
  for (const {id, open} of old.contentDocument.querySelectorAll('details')) {
    const section = page.contentDocument.getElementById(id);
    if (section) section.open = open;
  }
  page.contentWindow.scrollTo(0, old.contentWindow.scrollY);
}

/** Loads a page behind the one that is shown, and then takes its place. */
function show(run, newest) {
  const frame = element('iframe', main, {title: run});
  frame.style.visibility = 'hidden';
  shown = {run, newest, frame, loading: true};
  note.textContent = `Reading ${run} ...`;
  frame.onload = () => {
    if (shown.frame !== frame) return;  // another run was chosen since
    shown.loading = false;
    const old = main.firstChild;
    if (old !== frame && old.title === run) restore(old, frame);
    while (main.firstChild !== frame) main.firstChild.remove();
    frame.style.visibility = '';
    note.textContent = '';
  };
  frame.src = new URL(`page?${new URLSearchParams({run, newest})}`, import.meta.url);
}

/** Lists the runs, and shows the chosen one if its page is older than its tensors. */
async function look() {
  const found = await (await fetch(new URL('runs', import.meta.url))).json();
  const names = Object.keys(found);
  if (names.join('\n') !== [...runs.options].map((option) => option.value).join('\n')) {
    const chosen = runs.value;
    runs.replaceChildren(...names.map((name) => new Option(name, name)));
    runs.value = names.includes(chosen) ? chosen : names[0];
  }
  runs.parentElement.hidden = names.length === 0;
  if (names.length === 0) {
    note.textContent = NONE;
  } else if (runs.value !== shown.run || (found[runs.value] !== shown.newest && !shown.loading)) {
    show(runs.value, found[runs.value]);
  } else if (!shown.loading) {
    note.textContent = '';  // of a look that failed
  }
}

export function render() {
  const again = () => look().catch(() => { note.textContent = 'TensorBoard does not answer.'; });
  element('style', document.head, {textContent: STYLE});
  runs.onchange = again;
  setInterval(again, PERIOD);
  again();
}
