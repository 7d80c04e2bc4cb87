// SPDX-License-Identifier: Apache-2.0
#include "halfscope/number/operation_table.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/compare.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/neighbour.hpp"
#include "halfscope/number/remainder.hpp"

namespace halfscope {
namespace {

struct NamedWord {
  std::string_view name;
  Format format;
};

/// Formats as they appear in operation names; TestFloat's spelling if it has the format.
constexpr std::array kWords = {
    NamedWord{"f16", kBinary16},    NamedWord{"bf16", kBfloat16},   NamedWord{"tf32", kTf32},
    NamedWord{"f32", kBinary32},    NamedWord{"f64", kBinary64},    NamedWord{"e4m3", kFloat8E4M3},
    NamedWord{"e5m2", kFloat8E5M2}, NamedWord{"e3m2", kFloat6E3M2}, NamedWord{"e2m3", kFloat6E2M3},
    NamedWord{"e2m1", kFloat4E2M1},
};
static_assert(kWords.size() == kFormats.size(), "a format without a name here");

struct NamedInteger {
  WordType type;
  IntegerType integer;
};

constexpr std::array kIntegers = {
    NamedInteger{{"ui32", 32}, IntegerType::u32}, NamedInteger{{"ui64", 64}, IntegerType::u64},
    NamedInteger{{"i32", 32}, IntegerType::i32}, NamedInteger{{"i64", 64}, IntegerType::i64}};

constexpr WordType kBool{"bool", 1};
constexpr WordType kI32{"i32", 32};

constexpr WordType word(const NamedWord& w) { return {w.name, w.format.width}; }

// Adapters that give the library's functions one signature, by number of operands.

template <auto Function>
Rounded unary(const Operation& o, const Operands& x, const Modes& modes, bool) {
  return Function(o.format, x[0], modes);
}

template <auto Function>
Rounded binary(const Operation& o, const Operands& x, const Modes& modes, bool) {
  return Function(o.format, x[0], x[1], modes);
}

Rounded multiply_add(const Operation& o, const Operands& x, const Modes& modes, bool) {
  return fused_multiply_add(o.format, x[0], x[1], x[2], modes);
}

template <auto Function, OnNan on_nan>
Rounded compare(const Operation& o, const Operands& x, const Modes& modes, bool) {
  const Compared answer = Function(o.format, x[0], x[1], on_nan, modes);
  return {answer.result ? 1u : 0u, answer.flags};
}

Rounded in_total_order(const Operation& o, const Operands& x, const Modes&, bool) {
  return {total_order(o.format, x[0], x[1]) ? 1u : 0u, {}};
}

Rounded round_to_int(const Operation& o, const Operands& x, const Modes& modes, bool exact) {
  return round_to_integral(o.format, x[0], modes, exact);
}

Rounded scale(const Operation& o, const Operands& x, const Modes& modes, bool) {
  return scale_b(o.format, x[0], static_cast<std::int32_t>(x[1]), modes);
}

Rounded change_format(const Operation& o, const Operands& x, const Modes& modes, bool) {
  return convert(o.target, o.format, x[0], modes);
}

Rounded to_int(const Operation& o, const Operands& x, const Modes& modes, bool exact) {
  return to_integer(o.integer, o.format, x[0], modes, exact);
}

Rounded from_int(const Operation& o, const Operands& x, const Modes& modes, bool) {
  return from_integer(o.target, o.integer, x[0], modes);
}

enum class Gives { number, truth };

struct Row {
  std::string_view name;
  int operands;
  Gives gives;
  Operation::Apply apply;
};

/// Operations of every format except binary64: TestFloat's in its order, then others with their
/// names of IEEE 754-2019, and minNum and maxNum of IEEE 754-2008.
constexpr Row kRows[] = {
    {"add", 2, Gives::number, binary<add>},
    {"sub", 2, Gives::number, binary<subtract>},
    {"mul", 2, Gives::number, binary<multiply>},
    {"mulAdd", 3, Gives::number, multiply_add},
    {"div", 2, Gives::number, binary<divide>},
    {"rem", 2, Gives::number, binary<remainder>},
    {"sqrt", 1, Gives::number, unary<square_root>},
    {"roundToInt", 1, Gives::number, round_to_int},
    {"eq", 2, Gives::truth, compare<equal, OnNan::quiet>},
    {"le", 2, Gives::truth, compare<less_equal, OnNan::signaling>},
    {"lt", 2, Gives::truth, compare<less, OnNan::signaling>},
    {"eq_signaling", 2, Gives::truth, compare<equal, OnNan::signaling>},
    {"le_quiet", 2, Gives::truth, compare<less_equal, OnNan::quiet>},
    {"lt_quiet", 2, Gives::truth, compare<less, OnNan::quiet>},
    {"totalOrder", 2, Gives::truth, in_total_order},
    {"minimum", 2, Gives::number, binary<minimum>},
    {"maximum", 2, Gives::number, binary<maximum>},
    {"minimumNumber", 2, Gives::number, binary<minimum_number>},
    {"maximumNumber", 2, Gives::number, binary<maximum_number>},
    {"minNum", 2, Gives::number, binary<min_num>},
    {"maxNum", 2, Gives::number, binary<max_num>},
    {"nextUp", 1, Gives::number, unary<next_up>},
    {"nextDown", 1, Gives::number, unary<next_down>},
    {"logB", 1, Gives::number, unary<log_b>},
};

Operation arithmetic_row(const NamedWord& w, const Row& row) {
  Operation o{std::string(w.name) + "_" + std::string(row.name), w.format, w.format, {}, {},
              row.gives == Gives::truth ? kBool : word(w),       row.apply};
  o.takes.assign(static_cast<std::size_t>(row.operands), word(w));
  return o;
}

void add_arithmetic(std::vector<Operation>& table, const NamedWord& w) {
  for (const Row& row : kRows) table.push_back(arithmetic_row(w, row));
  table.push_back({std::string(w.name) + "_scaleB",
                   w.format,
                   w.format,
                   IntegerType::i32,
                   {word(w), kI32},
                   word(w),
                   scale});
}

std::string conversion_name(std::string_view from, std::string_view to) {
  return std::string(from) + "_to_" + std::string(to);
}

void add_conversions(std::vector<Operation>& table, const NamedWord& w) {
  for (const NamedWord& to : kWords) {
    if (to.name == w.name) continue;
    table.push_back({conversion_name(w.name, to.name),
                     w.format,
                     to.format,
                     {},
                     {word(w)},
                     word(to),
                     change_format});
  }
  for (const NamedInteger& i : kIntegers) {
    table.push_back({conversion_name(w.name, i.type.name),
                     w.format,
                     w.format,
                     i.integer,
                     {word(w)},
                     i.type,
                     to_int});
    table.push_back({conversion_name(i.type.name, w.name),
                     w.format,
                     w.format,
                     i.integer,
                     {i.type},
                     word(w),
                     from_int});
  }
}

std::vector<Operation> make_table() {
  std::vector<Operation> table;
  for (const NamedWord& w : kWords) {
    if (w.format != kBinary64) add_arithmetic(table, w);
    add_conversions(table, w);
  }
  return table;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Levenshtein distance: the fewest single-character edits from a to b, ignoring case.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// Distance of a wrong name from a known one. Truncated or extended names count as close.
std::size_t distance(std::string_view wrong, std::string_view name) {
  const std::size_t shared = std::min(wrong.size(), name.size());
  const std::size_t begins_alike =
      shared > 3 ? edits(wrong.substr(0, shared), name.substr(0, shared)) : 1;
  const std::size_t all = edits(wrong, name);
  return begins_alike == 0 ? std::min<std::size_t>(all, 1) : all;
}

/// Replaces _fma, the usual name elsewhere, by _mulAdd.
std::string in_our_words(std::string_view name) {
  const std::size_t cut = name.rfind("_fma");
  return std::string(name.substr(0, cut)) + (cut == name.npos ? "" : "_mulAdd");
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = make_table();
  return table;
}

const Operation* find_operation(std::string_view name) {
  const std::vector<Operation>& table = operations();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const Operation& o) { return o.name == name; });
  return found == table.end() ? nullptr : &*found;
}

std::vector<std::string_view> similar_operations(std::string_view name, std::size_t count) {
  const std::string wanted = in_our_words(name.substr(0, 64));  // limits the time
  std::vector<std::pair<std::size_t, std::string_view>> by_distance;
  for (const Operation& o : operations())
    by_distance.emplace_back(distance(wanted, o.name), o.name);
  std::stable_sort(by_distance.begin(), by_distance.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> names;
  for (const auto& [far, near] : by_distance) {
    if (names.size() == count) break;
    names.push_back(near);
  }
  return names;
}

}  // namespace halfscope
