// SPDX-License-Identifier: Apache-2.0
// The page: what is chosen, buttons, and the start. With charts.js and tables.js before it.
function choose(page, index) {
  state.tensor = index;
  const tensor = page.analysis.tensors[index];
  if (!tensor) return;
  byId('tensor').value = String(index);
  byId('tensor-facts').textContent = page.charts.facts[index];
  byId('tensor-name').textContent = byId('tensor').selectedOptions[0]?.textContent ?? '';
  redraw(page, (figure) => figure.dataset.series === 'tensor');
}

function chooseLog(page, log) {
  state.log = log;
  state.weight = 'all';
  for (const block of document.querySelectorAll('[data-log]:not(option)')) {
    block.hidden = block.dataset.log !== log;
  }
  const weight = byId('weight');
  if (!weight) return;
  weight.value = 'all';
  for (const option of weight.options) {
    option.hidden = option.disabled = (option.dataset.log ?? log) !== log;
  }
}

// --- the settings to paste
function settings(lines) {
  const kinds = [...document.querySelectorAll('input[name=kind]')];
  let wanted = kinds.find((radio) => radio.checked)?.value ?? 'static';
  const show = () => {
    const chosen = lines[byId('framework').value];
    const shown = [wanted, 'static', 'dynamic'].find((kind) => chosen[kind]);
    for (const radio of kinds) {
      radio.disabled = !chosen[radio.value];
      radio.checked = radio.value === shown;
    }
    byId('paste').textContent = chosen[shown];
    byId('paste-note').textContent = chosen.notes?.[shown] ?? '';
  };
  byId('framework').addEventListener('change', show);
  for (const radio of kinds) {
    radio.addEventListener('change', () => {
      wanted = radio.value;
      show();
    });
  }
  show();
}

async function copy(button) {
  const lines = button.parentElement.querySelector('pre');
  try {
    await navigator.clipboard.writeText(lines.textContent);
  } catch {  // pages from disk may have no clipboard
    getSelection().selectAllChildren(lines);
    document.execCommand('copy');
  }
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = 'Copy'; }, 2000);
}

// --- folded sections
function open(id) {
  const section = byId(id);
  if (section?.tagName === 'DETAILS') section.open = true;
  section?.scrollIntoView({block: 'start'});
}

function sections(page) {
  const all = [...document.querySelectorAll('details.section')];
  for (const section of all) {
    section.addEventListener('toggle', () => {
      if (section.open) redraw(page, (figure) => section.contains(figure));
    });
  }
  const button = byId('open-all');
  button.addEventListener('click', () => {
    const opened = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(opened));
    button.textContent = opened ? 'Fold all' : 'Open all';
    for (const section of all) section.open = opened;
  });
  byId('findings')?.addEventListener('click', (event) => {
    const link = event.target.closest('a');
    if (link) open(link.hash.slice(1));
  });
  if (location.hash) open(location.hash.slice(1));
}

// --- buttons
function save(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function nameTheme() {
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
  byId('theme').setAttribute('aria-pressed', String(isDark()));
}

function themes(page) {
  const changed = () => {
    nameTheme();
    redraw(page);
  };
  byId('theme').addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    changed();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  nameTheme();
}

function choices(page) {
  for (const radio of document.querySelectorAll('input[name=axis]')) {
    radio.addEventListener('change', () => {
      state.axis = radio.value;
      redraw(page, (figure) => !oneAxis.has(figure.dataset.chart));
    });
  }
  byId('log')?.addEventListener('change', (event) => {
    chooseLog(page, event.target.value);
    redraw(page, (figure) => figure.dataset.series !== 'tensor');
  });
  byId('weight')?.addEventListener('change', (event) => {
    state.weight = event.target.value;
    redraw(page, (figure) => figure.dataset.key === 'weight');
  });
  byId('tensor').addEventListener('change', (event) => choose(page, Number(event.target.value)));
  byId('worst').tBodies[0].addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    choose(page, Number(button.closest('tr').dataset.tensor));
    open('one');
  });
}

async function start() {
  const page = {analysis: await data('analysis'), charts: await data('charts')};
  window.halfscope = page;
  const {tensors, tensors_left_out: leftOut} = page.analysis;
  const name = 'halfscope-analysis' +
      (leftOut ? `-worst-${tensors.length}-of-${tensors.length + leftOut}-tensors` : '');
  byId('save-json').addEventListener(
      'click', () => save(`${name}.json`, 'application/json', JSON.stringify(page.analysis)));
  byId('save-csv').addEventListener('click', () => save(`${name}.csv`, 'text/csv', csvOf(page)));
  for (const button of document.querySelectorAll('.paste button')) {
    button.addEventListener('click', () => copy(button));
  }
  const lines = await data('settings');
  if (lines) settings(lines);
  chooseLog(page, Object.keys(page.charts.series)[0]);
  themes(page);
  tables();
  choices(page);
  sections(page);
  choose(page, page.charts.first_tensor);
  redraw(page);
}
start();
