// SPDX-License-Identifier: Apache-2.0
// The page of two runs: draws its charts, sorts the table, switches themes. It counts nothing:
// every number is in the islands.
const MOST_POINTS = 2000;
let chosen = 0;

// --- rows, by the name of the chart
function thinned(all) {
  const every = Math.max(1, Math.ceil(all.length / MOST_POINTS));
  return all.filter((_, i) => i % every === 0 || i === all.length - 1);
}
function steps(page) {
  return ['a', 'b'].flatMap(
      (run) => thinned(page.comparison.loss?.[run] ?? [])
                   .map(([step, loss]) => ({run: run.toUpperCase(), step, loss})));
}
// Where the scale or what became of the step changes, and both ends of every stretch between.
function scales(page) {
  return ['a', 'b'].flatMap((run) => {
    const skipped = new Set(page.comparison.summary[run].skipped);
    const all = (page.comparison.scales?.[run] ?? [])
        .filter(([, scale]) => scale > 0)
        .map(([step, scale]) => ({run: run.toUpperCase(), step, scale, log2: Math.log2(scale),
                                  skipped: skipped.has(step)}));
    const same = (x, y) => x && y && x.scale === y.scale && x.skipped === y.skipped;
    return thinned(all.filter((at, i) => !same(at, all[i - 1]) || !same(at, all[i + 1])));
  });
}
function outlines(page) {
  const tensor = page.comparison.tensors[chosen];
  return ['a', 'b'].flatMap((run) => {
    const counts = new Map(tensor[run].binades.map(([e, count]) => [e, bounds(count)[1]]));
    if (!counts.size) return [];
    const first = Math.min(...counts.keys()) - 1, last = Math.max(...counts.keys()) + 1;
    const rows = [];
    for (let e = first; e <= last; ++e) {  // an outline goes down to zero where nothing is
      const values = counts.get(e) ?? 0;
      rows.push({run: run.toUpperCase(), e, values, share: values / tensor[run].total});
    }
    return rows;
  });
}
const rows = {loss: steps, scales, binades: outlines};

// --- charts
const EMPTY = {
  loss: 'No finite loss.',
  scales: 'No loss scale.',
  binades: 'No finite nonzero values.',
};
async function draw(figure, page) {
  const {chart} = figure.dataset;
  clear(figure, chart);
  const values = rows[chart](page);
  if (!values.some((row) => chart !== 'loss' || row.loss !== null)) {
    return say(figure, EMPTY[chart]);
  }
  const spec = specOf(chart);
  const drawn = new Set(values.filter((row) => row.loss !== null)
                            .flatMap(({run, skipped}) => [`run${run}`, skipped && `skipped${run}`]));
  // A layer without values would have no extent.
  spec.layer = spec.layer.filter(({name}) => !name || drawn.has(name));
  spec.datasets = {[chart]: values};
  await show(figure, chart, spec, {config: theme(), renderer: 'svg'});
}

function choose(page, index) {
  chosen = index;
  byId('tensor').value = String(index);
  byId('tensor-facts').textContent = page.charts.facts[index];
  redraw(page, (figure) => figure.dataset.chart === 'binades');
}

// --- buttons
function save(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function nameTheme() {
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
  byId('theme').setAttribute('aria-pressed', String(isDark()));
}

function buttons(page) {
  byId('save-json').addEventListener(
      'click', () => save('halfscope-comparison.json', 'application/json',
                          JSON.stringify(page.comparison)));
  byId('theme').addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    nameTheme();
    redraw(page);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    nameTheme();
    redraw(page);
  });
  byId('tensor').addEventListener('change', (event) => choose(page, Number(event.target.value)));
  byId('worst').tBodies[0].addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    choose(page, Number(button.closest('tr').dataset.tensor));
    byId('h-tensor').scrollIntoView({block: 'start'});
  });
}

async function start() {
  const page = {comparison: await data('comparison'), charts: await data('charts')};
  window.halfscope = page;
  nameTheme();
  buttons(page);
  const table = byId('worst');
  sortable(table, limited(table.tBodies[0], byId('all-rows'), 50));
  hinted(table.parentElement);
  for (const operations of document.querySelectorAll('#operations table.data')) {
    hinted(operations.parentElement);
    limitedTable(operations);
  }
  choose(page, page.charts.first_tensor);
  redraw(page);
}
start();
