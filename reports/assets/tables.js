// SPDX-License-Identifier: Apache-2.0
// Tables: headings that sort, and rows that are shown when asked for.
// Headings sort; `sorted` is told.
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

// The first rows, `most` of them, until all are asked for; only the wanted ones. Where a row is
// marked, the rows around it: it is the one to see.
function limited(body, button, most, wanted = () => true) {
  let limit = most;
  const show = () => {
    const rows = [...body.rows].filter(wanted);
    const marked = rows.findIndex((tr) => tr.classList.contains('marked'));
    const first = Math.max(0, Math.min(marked - Math.floor(limit / 2), rows.length - limit));
    for (const tr of body.rows) tr.hidden = true;
    for (const tr of rows.slice(first, first + limit)) tr.hidden = false;
    button.hidden = rows.length <= limit;
    button.textContent = `Show all ${rows.length}`;
  };
  button.addEventListener('click', () => {
    limit = Infinity;
    show();
  });
  show();
  return show;
}

// Says so where columns lie outside of what is seen.
function hinted(box) {
  const hint = document.createElement('p');
  hint.className = 'note hint';
  hint.textContent = 'More columns: scroll sideways \u2192';
  box.before(hint);
  const show = () => {
    const hidden = box.scrollWidth - box.clientWidth;
    hint.hidden = hidden < 2;
    box.classList.toggle('cut', box.scrollLeft < hidden - 1);
  };
  new ResizeObserver(show).observe(box);
  new ResizeObserver(show).observe(box.firstElementChild);
  box.addEventListener('scroll', show, {passive: true});
}

// A table as reports/page/data_table.cpp writes it: its button follows the box it scrolls in.
function limitedTable(table) {
  const button = table.parentElement.nextElementSibling;
  sortable(table, limited(table.tBodies[0], button, 12));
}

// Rows of the chosen kind in the table of tensors.
function tensorTable(table) {
  const kind = byId('kind');
  const wanted = (tr) => !kind.value || tr.dataset.kinds.split(' ').includes(kind.value);
  const show = limited(table.tBodies[0], byId('all-rows'), 50, wanted);
  kind.addEventListener('change', show);
  sortable(table, show);
}

function tables() {
  for (const table of document.querySelectorAll('table.data')) {
    if (table.parentElement.classList.contains('scroll')) hinted(table.parentElement);
    if (table.id === 'worst') {
      tensorTable(table);
      continue;
    }
    limitedTable(table);
  }
}
