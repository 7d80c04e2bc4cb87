// SPDX-License-Identifier: Apache-2.0
#include "analyzers/compare/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyzers/underflow/provenance.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/updates/updates.hpp"

namespace halfscope::analyzers::compare {

using frames::Selection;
using underflow::Analysis;
using underflow::BinadeCount;
using underflow::Counts;
using underflow::LogFindings;
using underflow::StepFindings;
using underflow::Target;
using underflow::TensorFindings;
using updates::AddedTo;

namespace {

using log::printable;

std::int64_t difference(std::uint64_t b, std::uint64_t a) {
  return b >= a ? static_cast<std::int64_t>(b - a) : -static_cast<std::int64_t>(a - b);
}

/// Returns bounds of the elements zero in B and not in A, for tensors of the same size: at least zB
/// - zA, because at most zA zeros are common; at most zB, and at most A's nonzero elements.
Interval new_zeros(const Counts& a, const Counts& b) {
  const std::uint64_t zero_a = a.zero.low, zero_b = b.zero.low;
  return {zero_b > zero_a ? zero_b - zero_a : 0, std::min(zero_b, a.total - zero_a)};
}

/// The steps of two tensors: pairs of common steps, and the steps that only one has.
struct Paired {
  std::vector<std::pair<StepFindings, StepFindings>> both;
  Both<std::vector<std::int64_t>> alone;
};

Paired pair_steps(const TensorFindings& a, const TensorFindings& b) {
  Paired out;
  auto x = a.per_step.begin();
  auto y = b.per_step.begin();
  while (x != a.per_step.end() || y != b.per_step.end()) {
    if (y == b.per_step.end() || (x != a.per_step.end() && x->step < y->step)) {
      out.alone.a.push_back(x++->step);
    } else if (x == a.per_step.end() || y->step < x->step) {
      out.alone.b.push_back(y++->step);
    } else {
      out.both.emplace_back(*x++, *y++);
    }
  }
  return out;
}

/// One run's counts of a tensor over the common steps.
struct SideOfCounts {
  Counts counts;
  std::optional<double> max_abs;
  std::map<int, Interval> binades;

  void add(const StepFindings& step) {
    counts += step.counts;
    if (step.max_abs) max_abs = std::max(max_abs.value_or(0.0), *step.max_abs);
    for (const BinadeCount& b : step.binades) binades[b.exponent] += b.count;
  }
  bool exact() const {
    return std::all_of(binades.begin(), binades.end(),
                       [](const auto& row) { return row.second.exact(); });
  }
  std::vector<BinadeCount> list() const {
    std::vector<BinadeCount> out;
    for (const auto& [exponent, count] : binades) out.push_back({exponent, count});
    return out;
  }
};

/// Returns the binade of the lower median of the finite nonzero magnitudes.
std::optional<int> median_binade(const SideOfCounts& side) {
  const std::uint64_t n = side.counts.finite_nonzero.low;
  std::uint64_t up_to = 0;
  for (const auto& [exponent, count] : side.binades) {
    up_to += count.low;
    if (up_to >= n - n / 2) return exponent;
  }
  return std::nullopt;
}

/// Returns the Kolmogorov-Smirnov distance of the finite magnitudes, at the powers of two.
std::optional<double> share_difference(const SideOfCounts& a, const SideOfCounts& b) {
  const auto finite = [](const Counts& c) { return c.zero.low + c.finite_nonzero.low; };
  if (finite(a.counts) == 0 || finite(b.counts) == 0) return std::nullopt;
  const double of_a = static_cast<double>(finite(a.counts));
  const double of_b = static_cast<double>(finite(b.counts));
  std::set<int> exponents;
  for (const SideOfCounts* side : {&a, &b}) {
    for (const auto& [exponent, count] : side->binades) exponents.insert(exponent);
  }
  std::uint64_t below_a = a.counts.zero.low, below_b = b.counts.zero.low;
  double largest = 0;
  const auto look = [&] {
    largest = std::max(largest, std::abs(static_cast<double>(below_a) / of_a -
                                         static_cast<double>(below_b) / of_b));
  };
  look();
  for (const int exponent : exponents) {
    if (const auto row = a.binades.find(exponent); row != a.binades.end()) {
      below_a += row->second.low;
    }
    if (const auto row = b.binades.find(exponent); row != b.binades.end()) {
      below_b += row->second.low;
    }
    look();
  }
  return largest;
}

void set_shifts(ComparedTensor& t, const SideOfCounts& a, const SideOfCounts& b) {
  const double largest_a = a.max_abs.value_or(0), largest_b = b.max_abs.value_or(0);
  if (largest_a > 0 && largest_b > 0) {
    t.max_abs_shift = std::log2(largest_b) - std::log2(largest_a);
  }
  if (!a.exact() || !b.exact()) return;
  const auto median_a = median_binade(a), median_b = median_binade(b);
  if (median_a && median_b) t.median_shift = *median_b - *median_a;
  t.largest_share_difference = share_difference(a, b);
}

/// Returns the updates over the common steps; empty if a run has none.
std::optional<Both<UpdateCounts>> common_updates(const TensorFindings& a, const TensorFindings& b) {
  if (!a.updates || !b.updates) return std::nullopt;
  Both<UpdateCounts> sum;
  bool any = false;
  for (const auto& [step, of_a] : a.updates->per_step) {
    for (const auto& [other, of_b] : b.updates->per_step) {
      if (other != step) continue;
      sum.a += of_a;
      sum.b += of_b;
      any = true;
    }
  }
  return any ? std::optional(sum) : std::nullopt;
}

ComparedTensor compare_tensor(const Both<const LogFindings*>& runs, const TensorFindings& a,
                              const TensorFindings& b, const Comparison& c) {
  ComparedTensor t;
  t.name = meeting_name(a.role, a.name);
  t.role = a.role;
  t.loss_scaled = a.loss_scaled || b.loss_scaled;
  Paired steps = pair_steps(a, b);
  t.left_out = std::move(steps.alone);
  SideOfCounts side_a, side_b;
  bool same_size = true;
  for (const auto& [of_a, of_b] : steps.both) {
    t.steps.push_back(of_a.step);
    side_a.add(of_a);
    side_b.add(of_b);
    same_size = same_size && of_a.counts.total == of_b.counts.total;
    t.zeros_at.push_back(
        {of_a.step, of_a.counts.total, new_zeros(of_a.counts, of_b.counts), false});
  }
  t.counts = {side_a.counts, side_b.counts};
  t.max_abs = {side_a.max_abs, side_b.max_abs};
  t.binades = {side_a.list(), side_b.list()};
  t.zero_difference = difference(side_b.counts.zero.low, side_a.counts.zero.low);
  if (!same_size) t.zeros_at.clear();
  set_shifts(t, side_a, side_b);
  t.updates = common_updates(a, b);
  set_far(t, {&a, &b});
  if (c.own_format) t.untouched = {!a.zeros_may_be_flushed, !b.zeros_may_be_flushed};
  if (c.own_updates && t.updates) {
    t.wide_weight = {!underflow::kept_in_16_bits(*runs.a, a),
                     !underflow::kept_in_16_bits(*runs.b, b)};
  }
  return t;
}

std::string some_names(const LogFindings& log) {
  std::string out;
  for (std::size_t i = 0; i < log.tensors.size() && i < 3; ++i) {
    out += (i == 0 ? "'" : ", '") + printable(log.tensors[i].name) + "'";
  }
  return out + (log.tensors.size() > 3 ? ", ..." : "");
}

std::string some_steps(const LogFindings& log) {
  std::set<std::int64_t> steps;
  for (const TensorFindings& t : log.tensors) {
    for (const StepFindings& step : t.per_step) steps.insert(step.step);
  }
  std::string out;
  std::size_t shown = 0;
  for (const std::int64_t step : steps) {
    if (shown++ == 3) return out + ", ... to " + std::to_string(*steps.rbegin());
    out += (out.empty() ? "" : ", ") + std::to_string(step);
  }
  return out;
}

/// Throws if a tensor of both runs has two roles, so that no name can match.
void require_same_roles(const LogFindings& a, const LogFindings& b) {
  std::map<std::string, log::Role> in_b;
  for (const TensorFindings& t : b.tensors) in_b.emplace(underflow::path_in(t.name), t.role);
  for (const TensorFindings& t : a.tensors) {
    const auto found = in_b.find(underflow::path_in(t.name));
    if (found == in_b.end()) continue;
    throw frames::InputNeedsOption(
        printable(a.name) + " and " + printable(b.name) + ": tensor '" + printable(found->first) +
        "' is in both, as " + std::string(log::name_of(t.role)) + " in the first and " +
        std::string(log::name_of(found->second)) +
        " in the second, expected one role; name it for both, such as with " +
        frames::role_option("*", "weight"));
  }
}

[[noreturn]] void refuse_names(const LogFindings& a, const LogFindings& b) {
  require_same_roles(a, b);
  throw frames::InputNeedsOption(printable(a.name) + " and " + printable(b.name) +
                                 ": no tensor name occurs in both; the first holds " +
                                 some_names(a) + ", the second " + some_names(b) +
                                 "; name roles with " + frames::role_option() +
                                 ", or give two runs of the same model");
}

[[noreturn]] void refuse_steps(const LogFindings& a, const LogFindings& b) {
  throw log::BadInput(printable(a.name) + " and " + printable(b.name) +
                      ": their tensors have no step in common; the first has steps " +
                      some_steps(a) + ", the second " + some_steps(b) +
                      "; record both at the same steps, or give one file of each");
}

/// Matches tensors by name. A tensor without a common step counts as matched, but is skipped.
void match(Comparison& c, const LogFindings& a, const LogFindings& b) {
  std::map<std::string, std::size_t> in_b;
  for (std::size_t i = 0; i < b.tensors.size(); ++i) {
    in_b.emplace(meeting_name(b.tensors[i].role, b.tensors[i].name), i);
  }
  std::set<std::size_t> met;
  std::uint64_t without_step = 0;
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const std::string name = meeting_name(a.tensors[i].role, a.tensors[i].name);
    const auto found = in_b.find(name);
    if (found == in_b.end()) {
      c.only.a.push_back(name);
      continue;
    }
    met.insert(found->second);
    ComparedTensor t = compare_tensor({&a, &b}, a.tensors[i], b.tensors[found->second], c);
    t.index = {i, found->second};
    if (t.steps.empty()) {
      ++without_step;
    } else {
      c.tensors.push_back(std::move(t));
    }
  }
  if (met.empty()) refuse_names(a, b);
  if (c.tensors.empty()) refuse_steps(a, b);
  for (const auto& [name, i] : in_b) {
    if (!met.contains(i)) c.only.b.push_back(name);
  }
  if (without_step != 0) {
    c.notes.add(std::to_string(without_step) +
                " of the tensors in both runs share no step and are skipped");
  }
}

/// Returns true if the run keeps a weight that has updates in 16 bits.
bool keeps_16_bits(const LogFindings& log) {
  return std::ranges::any_of(log.tensors, [&](const TensorFindings& t) {
    return t.updates && underflow::kept_in_16_bits(log, t);
  });
}

/// Returns true if the run computed gradients in the target format.
bool any_in_target(const LogFindings& log) {
  return std::ranges::any_of(log.tensors, [](const TensorFindings& t) {
    return t.loss_scaled && t.counts.total != 0 && t.zeros_may_be_flushed;
  });
}

}  // namespace

std::string meeting_name(log::Role role, const std::string& name) {
  return std::string(log::name_of(role)) + "/" + underflow::path_in(name);
}

Comparison compare(const Analysis& a, const Analysis& b, const Both<Selection>& selections) {
  Comparison c;
  const LogFindings &log_a = a.logs.front(), &log_b = b.logs.front();
  c.logs = {log_a.name, log_b.name};
  c.target = a.target;
  const bool own_scale = selections.a.at_run_scale && selections.b.at_run_scale;
  c.own_format = own_scale && any_in_target(log_a) != any_in_target(log_b);
  c.own_updates = own_scale && (c.own_format || keeps_16_bits(log_a) || keeps_16_bits(log_b));
  if (!selections.a.at_run_scale) c.loss_scale = selections.a.loss_scale;
  match(c, log_a, log_b);
  add_scalars(c.runs.a, log_a);
  add_scalars(c.runs.b, log_b);
  add_trouble(c.runs.a, log_a, c.own_format);
  add_trouble(c.runs.b, log_b, c.own_format);
  sum_up(c, log_a, log_b);
  set_parting(c);
  return c;
}

namespace {

/// Returns true if a run computed gradients in bfloat16, and neither run computed any in binary16.
bool some_in_bfloat16(const Analysis& a, const Analysis& b) {
  underflow::Bfloat16Run both;
  for (const Analysis* run : {&a, &b}) {
    for (const TensorFindings& tensor : run->tensors()) both.add(tensor);
  }
  return both.is_one();
}

bool any_role_from(const Analysis& analysis, frames::RoleSource source) {
  return std::ranges::any_of(analysis.tensors(), [source](const TensorFindings& tensor) {
    return tensor.role_source == source;
  });
}

/// Throws log::BadInput if the log has only bounds: a comparison needs counts.
void require_counts(const Analysis& analysis) {
  const LogFindings& log = analysis.logs.front();
  if (log.kinds.empty()) return;
  throw log::BadInput(log.name + ": has bounds or scalars only (" + log.kinds.front().name +
                      "); compare needs run logs or tensors: record both runs "
                      "(docs/recording.md)");
}

}  // namespace

Comparison compare_logs(const std::filesystem::path& a, const std::filesystem::path& b,
                        const Target& target, Both<Selection> selections,
                        const std::optional<OrderAsked>& sums, const frames::Progress& progress) {
  // An unreadable file is reported before the logs are read.
  Both<std::optional<Operations>> operations = {read_operations(a), read_operations(b)};
  const readers::Logs opened(selections.a);
  const auto read = [&](const std::filesystem::path& log, const Selection& selection,
                        const Target& into) {
    Analysis analysis = underflow::analyze({log}, into, selection, progress, {}, opened);
    require_counts(analysis);
    return analysis;
  };
  Analysis of_a = read(a, selections.a, target), of_b = read(b, selections.b, target);
  // Two runs of one model have tensors of the same roles: what one file shows holds for both.
  using enum frames::RoleSource;
  if (any_role_from(of_a, assumed) && any_role_from(of_b, file)) {
    selections.a.unnamed_are_weights = true;
    of_a = read(a, selections.a, target);
  } else if (any_role_from(of_a, file) && any_role_from(of_b, assumed)) {
    selections.b.unnamed_are_weights = true;
    of_b = read(b, selections.b, target);
  }
  const bool in_bfloat16 = target.by_default && some_in_bfloat16(of_a, of_b);
  if (in_bfloat16) {
    const Target own{"bfloat16", kBfloat16, target.subnormals};
    of_a = read(a, selections.a, own);
    of_b = read(b, selections.b, own);
  }
  const updates::UpdateRequest asked = {.added_to = selections.a.at_run_scale ? AddedTo::kept
                                                                              : AddedTo::target};
  updates::add_updates(of_a, selections.a, asked, progress, opened);
  updates::add_updates(of_b, selections.b, asked, progress, opened);
  Comparison comparison = compare(of_a, of_b, selections);
  comparison.format_of_runs = in_bfloat16;
  comparison.order_asked = sums;
  add_elements(comparison, of_a.logs.front(), of_b.logs.front(), selections, progress, opened);
  comparison.operations = std::move(operations);
  frames::Notes notes = of_a.notes;
  notes.add_all(of_b.notes);
  notes.add_all(comparison.notes);
  comparison.notes = std::move(notes);
  return comparison;
}

}  // namespace halfscope::analyzers::compare
