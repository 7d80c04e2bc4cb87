// SPDX-License-Identifier: Apache-2.0
// The CSV of the page's tensors, byte for byte as `halfscope analyze --csv` writes it
// (reports/export/csv.cpp), from the JSON in the page.
const COUNTS = ['total', 'zero', 'nan', 'inf', 'flushed_to_zero', 'subnormal', 'normal',
                'overflow'];

function csvOf({analysis, charts}) {
  const largest = charts.csv.max_abs, printable = new Map(charts.csv.printable);
  const quoted = (name) => `"${(printable.get(name) ?? name).replaceAll('"', '""')}"`;
  const count = (n) => Array.isArray(n) ? n.join('..') : n ?? '';  // none: the log does not say
  const lines = [['log', 'name', 'role', 'source_dtype', 'step', ...COUNTS, 'max_abs']];
  analysis.tensors.forEach((tensor, i) => {
    const names = [quoted(tensor.log), quoted(tensor.name), tensor.role, tensor.source_dtype ?? ''];
    tensor.per_step.forEach((row, j) => {
      lines.push([...names, row.step, ...COUNTS.map((name) => count(row[name])), largest[i][j]]);
    });
  });
  return lines.map((line) => line.join(',') + '\r\n').join('');
}
