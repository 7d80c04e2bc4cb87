// SPDX-License-Identifier: Apache-2.0
// Draws the specifications the page was given. It counts nothing: every number is in the islands.
const byId = (id) => document.getElementById(id);
const state = {axis: 'linear', log: '', tensor: 0, weight: 'all'};
window.halfscopeViews = {};  // drawn views, for whoever wants the data behind a picture

// --- rows of the analysis, as the charts name them
const bounds = (count) => Array.isArray(count) ? count : [count, count];
const finiteNonzero = (s) => bounds(
    s.finite_nonzero ?? s.total - s.zero - (s.nan ?? 0) - (s.inf ?? 0));
const row = ([e, count], [of_low, of], more) => {
  const [low, high] = bounds(count);
  return {e, low, high, of, of_low, ...more};
};
// Shares of the values that a class holds, [low, high]: as reports/shares.hpp has them.
const classes = ['flushed_to_zero', 'subnormal', 'normal', 'overflow'];
const ratio = (part, rest) => part && part / (part + rest);
function shares(r, [least, most]) {
  const share = {};
  for (const name of classes) {
    const [low, high] = bounds(r[name]);
    const others = classes.filter((c) => c !== name).map((c) => bounds(r[c]));
    const sum = (end) => others.reduce((all, count) => all + count[end], 0);
    share[name] = [ratio(low, Math.min(sum(1), Math.max(0, most - low))),
                   ratio(high, Math.max(sum(0), least - high))];
  }
  return share;
}
const rows = {
  bars: (s) => s.binades.map((b) => row(b, finiteNonzero(s))),
  scales: (s) => s.by_scale.map(
      (r) => ({...r, of: finiteNonzero(s)[1], share: shares(r, finiteNonzero(s))})),
  cells: (s) => s.columns.flatMap(
      (c) => c.binades.map((b) => row(b, finiteNonzero(s), {step: c.step, last: c.last}))),
};
const datasets = {gradients: 'bars', histogram: 'bars', heat: 'cells', scales: 'scales'};
// Drawn on a canvas: too many marks for SVG.
const crowded = new Set(['heat', 'update-map', 'policy-scales']);
// The same on either axis.
const oneAxis = new Set(['heat', 'update-map', 'policy-scales', 'policy-flushed', 'rooms']);

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen === 'dark' ||
      (chosen === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
}

function seriesOf(name, page) {
  return name === 'tensor' ? page.analysis.tensors[state.tensor]
                           : page.charts.series[state.log][name];
}

// {spec, name, rows} of a series of the analysis, or a sentence why there is none.
function fromSeries({chart, series: name}, page) {
  const series = seriesOf(name, page);
  if (!series || finiteNonzero(series)[1] === 0) {
    return series?.total ? 'No finite nonzero values.' : 'This log holds no such tensors.';
  }
  const scaled = page.charts.scaled.includes(name === 'tensor' ? series.role : name);
  const dataset = datasets[chart];
  return {
    spec: page.charts.specs[chart][scaled ? 'scaled' : 'unscaled'][state.axis],
    dataset,
    rows: rows[dataset](series),
  };
}

// The same of a chart that brings its rows.
function fromOwn({chart, key}, page) {
  const own = page.charts.own[chart];
  const found = own?.rows[state.log]?.[key === 'weight' ? state.weight : 'all'];
  if (!found?.length) return 'Nothing to draw.';
  const named = (values) => Object.fromEntries(own.fields.map((field, i) => [field, values[i]]));
  return {spec: own.specs[state.axis], dataset: own.data, rows: found.map(named)};
}

function keyOf({chart, series}) {
  return series ? `${chart}/${series}` : chart;
}

function say(figure, text) {
  const empty = document.createElement('p');
  empty.className = 'empty';
  empty.textContent = text;
  figure.replaceChildren(empty);
}

// The theme, with names as long as the chart is wide.
function configOf(figure, page) {
  const config = structuredClone(page.charts.themes[isDark() ? 'dark' : 'light']);
  config.axisY = {labelLimit: Math.max(110, Math.round(figure.clientWidth * 0.32))};
  const narrow = figure.clientWidth < 560;  // one name a line, as long as the chart is wide
  config.legend = {
    ...config.legend,
    columns: narrow ? 1 : 2,
    labelLimit: Math.round(narrow ? figure.clientWidth - 50 : figure.clientWidth * 0.4),
  };
  return config;
}

async function draw(figure, page) {
  const key = keyOf(figure.dataset);
  window.halfscopeViews[key]?.finalize();
  delete window.halfscopeViews[key];
  figure.replaceChildren();
  const found = figure.dataset.series ? fromSeries(figure.dataset, page)
                                      : fromOwn(figure.dataset, page);
  const picture = figure.closest('.picture');
  if (picture) picture.hidden = typeof found === 'string';  // no empty frame
  if (typeof found === 'string') return say(figure, found);
  const spec = structuredClone(found.spec);
  const caption = picture?.querySelector('figcaption div:not([hidden])');
  if (caption) spec.description = caption.textContent;
  spec.datasets = {[found.dataset]: found.rows};
  if (spec.height.step) {  // so many pixels a name; Vega-Lite would warn of a width that fits
    const {y} = (spec.layer?.[0] ?? spec).encoding;
    const names = new Set(found.rows.map((r) => r[y.field]));
    spec.height = spec.height.step * names.size;
  }
  const result = await vegaEmbed(figure, spec, {
    mode: 'vega-lite',
    ast: true,  // expressions are interpreted: the policy of the page forbids compiling them
    renderer: crowded.has(figure.dataset.chart) ? 'canvas' : 'svg',
    config: configOf(figure, page),
    defaultStyle: false,
    forceActionsMenu: true,
    tooltip: {disableDefaultStyle: true},
    actions: {export: true, source: false, compiled: false, editor: false},
    downloadFileName: `halfscope-${figure.dataset.chart}`,
    i18n: {CLICK_TO_VIEW_ACTIONS: 'Save this chart'},
  });
  window.halfscopeViews[key] = result.view;
}

// Drawings are queued: two of one figure at a time would leave both. What is folded has no width:
// it is drawn when it is opened.
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
