// SPDX-License-Identifier: Apache-2.0
// The charts of the page: their rows and parameters. It counts nothing: every number is in the
// islands.
const state = {axis: 'linear', log: '', tensor: 0, weight: 'all'};

// --- rows of the analysis, by the name of the charts' data
const finiteNonzero = (s) => bounds(
    s.finite_nonzero ?? s.total - s.zero - (s.nan ?? 0) - (s.inf ?? 0));
// As count_text() and share_text() of reports/answer say it.
const percent = (p) => p === 0 ? '0 %' :
    p >= 100 ? '100 %' :
    p < 0.01 ? '< 0.01 %' :
    p > 99.99 ? '> 99.99 %' : `${p.toFixed(p >= 99.9 ? 2 : p >= 10 ? 1 : p >= 0.1 ? 2 : 3)} %`;
const range = (low, high) => low === high ? low : `${low} to ${high}`;
function counted([low, high], [least, most]) {
  const part = range(percent(least), percent(most));
  return `${range(low.toLocaleString('en'), high.toLocaleString('en'))} (${part})`;
}
const row = ([e, count], [of_low, of], more) => {
  const [low, high] = bounds(count);
  const shares = [100 * low / of, 100 * high / Math.max(high, of_low)];
  return {e, low, high, values: counted([low, high], shares), ...more};
};
// Shares of the values that a class holds, [low, high]: as reports/answer/series.hpp has them.
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
function scaleRow(r, of) {
  const share = shares(r, of);
  const texts = classes.map((name) => [
    `${name}_text`, counted(bounds(r[name]), share[name].map((part) => 100 * part))]);
  return {...r, of: of[1], share, ...Object.fromEntries(texts)};
}
const rows = {
  bars: (s) => s.binades.map((b) => row(b, finiteNonzero(s))),
  scales: (s) => s.by_scale.map((r) => scaleRow(r, finiteNonzero(s))),
  cells: (s) => s.columns.flatMap(
      (c) => c.binades.map((b) => row(b, finiteNonzero(s), {step: c.step, last: c.last}))),
};
// Drawn on a canvas: too many marks for SVG.
const crowded = new Set(['fp8', 'heat', 'rank-map', 'update-map', 'policy-scales']);
// The same on either axis.
const oneAxis = new Set(['fp8', 'heat', 'rank-map', 'rank-strip', 'update-map', 'policy-scales',
                         'policy-flushed', 'rooms', 'recipes']);

function seriesOf(name, page) {
  return name === 'tensor' ? page.analysis.tensors[state.tensor]
                           : page.charts.series[state.log][name];
}

// {spec, rows} of a series of the analysis, or a sentence why there is none.
function fromSeries({chart, series: name}, page) {
  const series = seriesOf(name, page);
  if (!series || finiteNonzero(series)[1] === 0) {
    return series?.total ? 'No finite nonzero values.' : 'This log holds no such tensors.';
  }
  const scaled = page.charts.scaled.includes(name === 'tensor' ? series.role : name);
  const window = chart === 'gradients' ? chart : scaled ? 'scaled' : 'unscaled';
  const spec = specOf(chart, page.charts.parameters[window], state.axis);
  return {spec, rows: rows[spec.data.name](series)};
}

// The same of a chart that brings its rows.
function fromOwn({chart, key}, page) {
  const own = page.charts.own[chart];
  const found = own?.rows[state.log]?.[key === 'weight' ? state.weight : key ?? 'all'];
  if (!found?.length) return 'Nothing to draw.';
  const named = (values) => Object.fromEntries(own.fields.map((field, i) => [field, values[i]]));
  return {spec: specOf(chart, own.parameters, state.axis), rows: found.map(named)};
}

function keyOf({chart, series, key}) {
  const part = series ?? (key === 'weight' ? undefined : key);
  return part ? `${chart}/${part}` : chart;
}

// The theme, with names as long as the chart is wide.
function configOf(figure) {
  const config = theme();
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
  clear(figure, key);
  const found = figure.dataset.series ? fromSeries(figure.dataset, page)
                                      : fromOwn(figure.dataset, page);
  const picture = figure.closest('.picture');
  if (picture) picture.hidden = typeof found === 'string';  // no empty frame
  if (typeof found === 'string') return say(figure, found);
  const {spec} = found;
  const caption = picture?.querySelector('figcaption div:not([hidden])');
  if (caption) spec.description = caption.textContent;
  spec.datasets = {[spec.data.name]: found.rows};
  if (spec.height.step) {  // so many pixels a name; Vega-Lite would warn of a width that fits
    const names = new Set(found.rows.map((r) => r[spec.encoding.y.field]));
    spec.height = spec.height.step * names.size;
  }
  await show(figure, key, spec, {
    config: configOf(figure),
    renderer: crowded.has(figure.dataset.chart) ? 'canvas' : 'svg',
  });
}
