// SPDX-License-Identifier: Apache-2.0
// What the page's data blocks hold. They have columns in place of rows (reports/page/island.cpp).
function rowsOf(value) {
  if (Array.isArray(value)) return value.map(rowsOf);
  if (value === null || typeof value !== 'object') return value;
  const columns = value['@columns'];
  if (!columns) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, rowsOf(v)]));
  const lists = Object.entries(columns).map(([field, list]) => [field, rowsOf(list)]);
  return lists[0][1].map((_, i) => Object.fromEntries(lists.map(([field, list]) => [field, list[i]])));
}

// The value of a data block; null where the page has none of that name.
async function data(id) {
  const text = await unpacked(id);
  return text === null ? null : rowsOf(JSON.parse(text));
}
