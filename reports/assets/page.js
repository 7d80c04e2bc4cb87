// SPDX-License-Identifier: Apache-2.0
// The page: draws the specifications it was given, sorts the table, switches themes, saves files.
// It counts nothing: every number is in the islands.
(() => {
  'use strict';

  const byId = (id) => document.getElementById(id);
  const SHOWN_ROWS = 50;
  const state = {axis: 'linear', log: '', tensor: 0};
  window.halfscopeViews = {};  // drawn views, for whoever wants the data behind a picture

  async function island(id) {
    const element = byId(id);
    if (!element.dataset.encoding) return element.textContent;
    const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Response(plain).text();
  }

  // --- rows of the analysis, as the charts name them
  const bounds = (count) => Array.isArray(count) ? count : [count, count];
  const finiteNonzero = (s) => s.total - s.zero - s.nan - s.inf;
  const row = ([e, count], of, more) => {
    const [low, high] = bounds(count);
    return {e, low, high, of, ...more};
  };
  const rows = {
    bars: (s) => s.binades.map((b) => row(b, finiteNonzero(s))),
    scales: (s) => s.by_scale.map((r) => ({...r, of: finiteNonzero(s)})),
    cells: (s) => s.columns.flatMap(
        (c) => c.binades.map((b) => row(b, finiteNonzero(s), {step: c.step, last: c.last}))),
  };
  const datasets = {histogram: 'bars', heat: 'cells', scales: 'scales'};

  // --- charts
  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen === 'dark' ||
        (chosen === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
  }

  function seriesOf(name, page) {
    return name === 'tensor' ? page.analysis.tensors[state.tensor]
                             : page.charts.series[state.log][name];
  }

  async function draw(figure, page) {
    const {chart, series: name} = figure.dataset;
    const key = `${chart}/${name}`;
    const series = seriesOf(name, page);
    window.halfscopeViews[key]?.finalize();
    delete window.halfscopeViews[key];
    figure.replaceChildren();
    const dataset = datasets[chart];
    if (!series || finiteNonzero(series) === 0) {
      const empty = document.createElement('p');
      empty.className = 'empty';
      empty.textContent =
          series?.total ? 'No finite nonzero values.' : 'This log holds no such tensors.';
      figure.append(empty);
      return;
    }
    const scaled = page.charts.scaled.includes(name === 'tensor' ? series.role : name);
    const specs = page.charts.specs[chart];
    const spec = structuredClone(specs[scaled ? 'scaled' : 'unscaled'][state.axis]);
    spec.datasets = {[dataset]: rows[dataset](series)};
    const result = await vegaEmbed(figure, spec, {
      mode: 'vega-lite',
      ast: true,  // expressions are interpreted: the policy of the page forbids compiling them
      renderer: chart === 'heat' ? 'canvas' : 'svg',
      config: page.charts.themes[isDark() ? 'dark' : 'light'],
      defaultStyle: false,
      forceActionsMenu: true,
      tooltip: {disableDefaultStyle: true},
      actions: {export: true, source: false, compiled: false, editor: false},
      downloadFileName: `halfscope-${chart}`,
      i18n: {CLICK_TO_VIEW_ACTIONS: 'Save this chart'},
    });
    window.halfscopeViews[key] = result.view;
  }

  // Drawings are queued: two of one figure at a time would leave both.
  let queue = Promise.resolve();
  function redraw(page, wanted = () => true) {
    const figures = [...document.querySelectorAll('figure.chart')].filter(wanted);
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

  function choose(page, index) {
    state.tensor = index;
    const tensor = page.analysis.tensors[index];
    if (!tensor) return;
    byId('tensor').value = String(index);
    const shape = page.charts.facts[index];
    byId('tensor-facts').textContent = shape;
    redraw(page, (figure) => figure.dataset.series === 'tensor');
  }

  // --- table
  function sortable(table, sorted) {
    const body = table.tBodies[0];
    const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const key = (tr, i) => {
      const cell = tr.cells[i];
      return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
    };
    const compare = (a, b) => {
      if (typeof a === 'number' && typeof b === 'number') return a - b;
      if (typeof a !== typeof b) return typeof a === 'number' ? 1 : -1;  // cells without a number
      return a.localeCompare(b, 'en', {numeric: true});
    };
    headings.forEach((heading, i) => heading.firstElementChild.addEventListener('click', () => {
      const first = body.rows[0]?.cells[i].dataset.v === undefined ? 'ascending' : 'descending';
      const other = first === 'ascending' ? 'descending' : 'ascending';
      const order = heading.getAttribute('aria-sort') === first ? other : first;
      headings.forEach((h) => h.removeAttribute('aria-sort'));
      heading.setAttribute('aria-sort', order);
      const sign = order === 'ascending' ? 1 : -1;
      body.append(...[...body.rows].sort((a, b) => sign * compare(key(a, i), key(b, i))));
      sorted();
    }));
  }

  // Rows of the chosen kind, the first SHOWN_ROWS of them until all are asked for.
  function limited(body) {
    const all = byId('all-rows'), kind = byId('kind');
    let most = SHOWN_ROWS;
    const show = () => {
      const wanted = (tr) => !kind.value || tr.dataset.kinds.split(' ').includes(kind.value);
      let shown = 0;
      for (const tr of body.rows) tr.hidden = !wanted(tr) || ++shown > most;
      all.hidden = shown <= most;
      all.textContent = `Show all ${shown}`;
    };
    kind.addEventListener('change', show);
    all.addEventListener('click', () => {
      most = Infinity;
      show();
    });
    show();
    return show;
  }

  // --- buttons
  function save(name, type, text) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], {type}));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async function copy() {
    const line = byId('paste');
    try {
      await navigator.clipboard.writeText(line.textContent);
    } catch {  // pages from disk may have no clipboard
      getSelection().selectAllChildren(line);
      document.execCommand('copy');
    }
    byId('copy').textContent = 'Copied';
    setTimeout(() => { byId('copy').textContent = 'Copy'; }, 2000);
  }

  function nameTheme() {
    byId('theme').textContent = isDark() ? 'Light' : 'Dark';
    byId('theme').setAttribute('aria-pressed', String(isDark()));
  }

  function buttons(page, texts) {
    byId('save-json').addEventListener(
        'click', () => save('halfscope-analysis.json', 'application/json', texts.analysis));
    byId('save-csv').addEventListener(
        'click', () => save('halfscope-analysis.csv', 'text/csv', texts.csv));
    byId('copy')?.addEventListener('click', copy);
    byId('theme').addEventListener('click', () => {
      document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
      nameTheme();
      redraw(page);
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      nameTheme();
      redraw(page);
    });
    for (const radio of document.querySelectorAll('input[name=axis]')) {
      radio.addEventListener('change', () => {
        state.axis = radio.value;
        redraw(page, (figure) => figure.dataset.chart !== 'heat');
      });
    }
    byId('log')?.addEventListener('change', (event) => {
      state.log = event.target.value;
      redraw(page, (figure) => figure.dataset.series !== 'tensor');
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
    const texts = {analysis: await island('analysis'), csv: JSON.parse(await island('csv'))};
    const page = {analysis: JSON.parse(texts.analysis), charts: JSON.parse(await island('charts'))};
    window.halfscope = page;
    state.log = Object.keys(page.charts.series)[0];
    state.tensor = page.charts.first_tensor;
    nameTheme();
    buttons(page, texts);
    const table = byId('worst');
    sortable(table, limited(table.tBodies[0]));
    choose(page, state.tensor);
    redraw(page);
  }
  start();
})();
