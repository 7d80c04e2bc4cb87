// SPDX-License-Identifier: Apache-2.0
// What both pages draw with: SPECS and SHARED are the files of charts/ (assemble.py).
const byId = (id) => document.getElementById(id);
const bounds = (count) => Array.isArray(count) ? count : [count, count];
window.halfscopeViews = {};  // drawn views, for whoever wants the data behind a picture

// A specification with its values in place: charts/README.md has the rule.
function filled(part, values) {
  if (Array.isArray(part)) {
    return part.flatMap((p) => p?.$ ? filled(p, values) : [filled(p, values)]);
  }
  if (part === null || typeof part !== 'object') return part;
  const {$: name, ...fields} = part;
  const own = Object.fromEntries(Object.entries(fields).map(([k, v]) => [k, filled(v, values)]));
  if (name === undefined) return own;
  if (!(name in values)) throw new Error(`the parameter "${name}" is missing`);
  const value = filled(values[name], values);
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? {...value, ...own}
                                                                              : value;
}

// A chart's specification. axis: linear or log, where the chart has a choice.
function specOf(chart, parameters, axis) {
  return filled(SPECS[chart], {...SHARED.pieces, ...SHARED[axis], ...parameters});
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === 'dark' ||
      (chosen === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
}

function theme() {
  return filled(SHARED.theme, {...SHARED.pieces, ...SHARED[isDark() ? 'dark' : 'light']});
}

function clear(figure, key) {
  window.halfscopeViews[key]?.finalize();
  delete window.halfscopeViews[key];
  figure.replaceChildren();
}

function say(figure, text) {
  const empty = document.createElement('p');
  empty.className = 'empty';
  empty.textContent = text;
  figure.replaceChildren(empty);
}

async function show(figure, key, spec, {config, renderer}) {
  const {chart} = figure.dataset;
  const result = await vegaEmbed(figure, spec, {
    mode: 'vega-lite',
    ast: true,  // expressions are interpreted: the policy of the page forbids compiling them
    renderer,
    config,
    defaultStyle: false,
    forceActionsMenu: true,
    tooltip: {disableDefaultStyle: true},
    actions: {export: true, source: false, compiled: false, editor: false},
    downloadFileName: `halfscope-${chart}`,
    i18n: {CLICK_TO_VIEW_ACTIONS: 'Save this chart'},
  });
  window.halfscopeViews[key] = result.view;
}

// Drawings are queued: two of one figure at a time would leave both. What is folded has no width:
// it is drawn when it is opened. draw() is the page's own.
let queue = Promise.resolve();
function redraw(page, wanted = () => true) {
  const figures = [...document.querySelectorAll('.chart')].filter(
      (figure) => wanted(figure) && !figure.closest('details.section:not([open])'));
  document.documentElement.dataset.drawn = 'no';
  for (const figure of figures) {
    queue = queue.then(() => draw(figure, page)).catch((error) => {
      figure.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
    });
  }
  const last = queue;
  last.then(() => {
    if (queue === last) document.documentElement.dataset.drawn = 'yes';
  });
}
